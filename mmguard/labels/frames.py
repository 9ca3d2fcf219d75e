"""The images of a packed sample: one, or the frames of a video."""

from __future__ import annotations

from typing import Any, List


def frames_of(sample: Any) -> List[Any]:
    """The frames of mmdet's ``TrackDataSample``, each a sample with labels of its own; else the sample itself."""
    frames = getattr(sample, 'video_data_samples', None)
    return [sample] if frames is None else list(frames)
