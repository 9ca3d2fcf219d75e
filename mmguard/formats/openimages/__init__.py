"""OpenImages: a csv file of boxes."""

from __future__ import annotations

from mmguard.formats.format import Format


class OpenImages(Format):
    """A csv of boxes and one of classes, which only an mmdet config names together."""

    name = 'openimages'

    def detect(self, target: str) -> bool:
        return False
