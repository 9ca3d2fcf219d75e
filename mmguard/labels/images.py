"""Which labels of whole images are valid: the classes of a classifier."""

from __future__ import annotations

from typing import ClassVar, Optional

from mmguard.labels.space import LabelMap, LabelRule

#: What marks an image without a valid label among class indices; PyTorch's cross entropy leaves it out by itself.
NO_LABEL = -100


class ImageLabelRule(LabelRule):
    """:class:`LabelRule` of the labels of an image, which count as its instances.

    Args:
        num_classes, on_invalid, label_map: As there.
        ignore_index (int): The label that is not trained on.
    """

    kind: ClassVar[str] = 'instances'

    def __init__(
        self,
        num_classes: int,
        ignore_index: int = NO_LABEL,
        on_invalid: str = 'ignore',
        label_map: Optional[LabelMap] = None,
    ) -> None:
        super().__init__(num_classes, ignore_index, on_invalid, label_map)
