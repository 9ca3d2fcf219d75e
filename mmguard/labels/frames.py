"""The images of a packed sample: one, the frames of a video, or those that re-identification compares."""

from __future__ import annotations

from typing import Any, List

from mmguard.labels.tally import LABEL_GUARD


def frames_of(sample: Any) -> List[Any]:
    """The frames of mmdet's ``TrackDataSample``, each a sample with labels of its own; of a ``ReIDDataSample`` of
    several images a sample for each, with its path, its label and its report; else the sample itself."""
    frames = getattr(sample, 'video_data_samples', None)
    if frames is not None:
        return list(frames)
    paths, label = sample.get('img_path'), getattr(sample.get('gt_label'), 'label', None)
    if not isinstance(paths, list) or label is None:  # several cameras see one scene
        return [sample]
    records = sample.get(LABEL_GUARD) or [None] * len(paths)
    return [_image(sample, path, label[place : place + 1], records[place]) for place, path in enumerate(paths)]


def _image(sample: Any, path: str, label: Any, record: Any) -> Any:
    image = type(sample)(metainfo={'img_path': path}).set_gt_label(label)
    if record is not None:
        image.set_field(record, LABEL_GUARD, field_type='metainfo')
    return image
