"""Guard of the labels of whole images, for MMPretrain."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import numpy as np
import torch
from mmcv.transforms import BaseTransform

from mmguard.labels.rules import UNLABELED, ImageLabelRule, LabelMap
from mmguard.labels.tally import LabelGuardError, Tally, adapt_rule, leave_in_results, leave_in_sample
from mmguard.log.messages import warn_unreported

#: A row of probabilities may miss the sum 1 by this much, as in the guarded losses.
_TOLERANCE = 0.1


class GuardClsLabels(BaseTransform):
    """Check and sanitize the label of an image (MMPretrain), before or after PackInputs.

    An image whose label is invalid stays in the batch with the label ``ignore_index``, and the guarded losses exclude
    it from sum and denominator. The guard runs before the data preprocessor, whose MixUp and CutMix fail on an invalid
    label; with ``to_onehot`` it makes the scores that the preprocessor would make, and an image without a valid label
    gets a row of NaN, which spreads to every image that it is mixed with. If an image has several labels
    (``multi_label``) the invalid ones are removed, and the others trained. Metrics of a validation count an image with
    an invalid label as wrong, as they do without a guard.

    Required keys: ``gt_label`` (an integer, or several) or ``gt_score`` (C,), or ``data_samples`` with them. Nothing
    happens without them (a test pipeline). Added key: ``label_guard``, with labels counted as instances.

    Args:
        num_classes (int): Valid labels are ``[0, num_classes)``.
        ignore_index (int): The label to ignore. Defaults to -100.
        on_invalid (str): ``'ignore'`` (default), ``'clip'`` clamps a label into the classes (a score into [0, 1], with
            the sum 1), ``'raise'`` raises ``LabelGuardError`` that names the file.
        label_map (dict[int, int], optional): Raw label -> class (or ``ignore_index``), applied first; ``'*'`` matches
            every label that is not named.
        multi_label (bool): True if an image has any number of labels, as for MultiLabelClsHead.
        to_onehot (bool): Turn labels into scores here, as ``to_onehot`` and ``batch_augments`` of ClsDataPreprocessor
            need them.

    Raises:
        ValueError: Arguments out of range; when called, a score without one entry per class, several labels
            without ``multi_label``. The message names the file.
        TypeError: When called, a floating-point label.
        LabelGuardError: When called, an invalid label with ``on_invalid='raise'``.
    """

    def __init__(
        self,
        num_classes: int,
        ignore_index: int = UNLABELED,
        on_invalid: str = 'ignore',
        label_map: Optional[LabelMap] = None,
        multi_label: bool = False,
        to_onehot: bool = False,
    ) -> None:
        warn_unreported(type(self).__name__)
        self.rule = ImageLabelRule(num_classes, ignore_index, on_invalid, label_map)
        self.multi_label = multi_label
        self.to_onehot = to_onehot

    def transform(self, results: Dict[str, Any]) -> Dict[str, Any]:
        """Sanitize the label of a sample, packed or not, and attach a :class:`~mmguard.labels.tally.Tally`."""
        packed = results.get('data_samples')
        sample = results if packed is None else packed
        label, score = sample.get('gt_label'), sample.get('gt_score')
        if label is None and score is None:
            return results
        label, score, tally = self._sanitize_labels(label, score, _get_source(sample), adapt_rule(self.rule, sample))
        if packed is None:
            found = {'gt_label': label, 'gt_score': score}
            results.update({key: value for key, value in found.items() if value is not None})
            leave_in_results(results, 'instances', tally, self.rule.whole_map)
            return results
        if label is not None:
            packed.set_gt_label(torch.from_numpy(label))
        if score is not None:
            packed.set_gt_score(torch.from_numpy(score))
        leave_in_sample(packed, 'instances', tally, self.rule.whole_map)
        return results

    def _sanitize_labels(
        self, label: Any, score: Any, source: Optional[str], rule: ImageLabelRule
    ) -> Tuple[Any, Any, Tally]:
        """Return label and score of an image, each ``None`` if missing, and their tally."""
        if score is not None:  # the losses read only the score
            score, tally = self._sanitize_score(np.asarray(score, dtype=np.float32), source)
            return None, score, tally
        labels = np.atleast_1d(np.asarray(label))
        if labels.dtype.kind not in 'biu' and labels.size:
            raise TypeError(f'{source}: gt_label is {labels.dtype}, expected integers: the index of a class')
        if labels.ndim != 1 or (labels.size != 1 and not self.multi_label):
            raise ValueError(
                f'{source}: gt_label has shape {labels.shape}, expected one label. If images have several, write '
                f'multi_label=True, and a head for it (MultiLabelClsHead)'
            )
        labels, tally = rule.sanitize(labels.astype(np.int64), source)
        classes = labels[labels != rule.ignore_index]
        left = classes if self.multi_label else labels
        return left, self._build_one_hot(classes, num_classes=labels.size) if self.to_onehot else None, tally

    def _build_one_hot(self, classes: np.ndarray, num_classes: int) -> np.ndarray:
        if num_classes and not classes.size:
            return np.full(self.rule.num_classes, np.nan, np.float32)
        score = np.zeros(self.rule.num_classes, np.float32)
        score[classes] = 1
        return score

    def _sanitize_score(self, score: np.ndarray, source: Optional[str]) -> Any:
        rule = self.rule
        if score.shape != (rule.num_classes,):
            raise ValueError(
                f'{source}: gt_score has shape {score.shape}, expected ({rule.num_classes},): one entry per class of '
                f'the head'
            )
        tally = Tally(total=1, source=source)
        inside = bool(((score >= 0) & (score <= 1 + _TOLERANCE)).all())  # NaN fails both
        if inside and (self.multi_label or abs(float(score.sum()) - 1) <= _TOLERANCE):
            return score, tally
        if rule.on_invalid == 'raise':
            raise LabelGuardError(
                f'{source}: gt_score is invalid, with entries from {score.min():g} to {score.max():g} and the sum '
                f'{score.sum():g}. Expected entries in [0, 1]{"" if self.multi_label else " that add up to 1"}. '
                "Correct the annotation, or train without this image with on_invalid='ignore'",
                [Tally(total=1, skipped=1, source=source)],
            )
        clipped = np.nan_to_num(score, nan=0, posinf=1, neginf=0).clip(0, 1)
        whole = clipped.sum()
        if rule.on_invalid == 'clip' and (self.multi_label or whole > 0):
            tally.remapped = 1
            return clipped if self.multi_label else clipped / whole, tally
        tally.skipped = 1
        return np.full_like(score, np.nan), tally

    def __repr__(self) -> str:
        rule = self.rule
        return (
            f'{type(self).__name__}(num_classes={rule.num_classes}, ignore_index={rule.ignore_index}, '
            f'on_invalid={rule.on_invalid!r}, label_map={rule.whole_map or None}, multi_label={self.multi_label}, '
            f'to_onehot={self.to_onehot})'
        )


def _get_source(sample: Any) -> Optional[str]:
    """Return the file of an image; for a data set in memory (CIFAR, MNIST) its number; ``None`` if unknown."""
    source, number = sample.get('img_path'), sample.get('sample_idx')
    return source if source or number is None else f'sample {number}'
