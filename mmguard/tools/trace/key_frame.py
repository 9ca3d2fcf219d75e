"""Of what a video's pipeline holds, the frame that is traced: the key frame."""

from __future__ import annotations

from typing import Any, Dict

from mmguard.labels.frames import frames_of


def key_frame(results: Dict[str, Any]) -> Dict[str, Any]:
    """Of a sample that is not packed yet: a video, its frames in lists, or (as it is) an image."""
    images, paths = results.get('images'), results.get('img_path')
    if isinstance(images, list) and paths is None:  # no frame has been sampled yet
        return dict(images[results.get('key_frame_id', 0)])
    if not isinstance(paths, list):
        return results
    flags = list(results.get('key_frame_flags') or ())
    at = flags.index(True) if True in flags else 0
    return {key: value[at] for key, value in results.items() if isinstance(value, list) and len(value) == len(paths)}


def packed_key_frame(sample: Any) -> Any:
    """Of a packed sample: mmdet's ``TrackDataSample``, or (as it is) that of an image."""
    return frames_of(sample)[next(iter(sample.get('key_frames_inds', ())), 0)]
