from __future__ import annotations

from typing import Dict

from mmguard.diagnosis.class_counts import has_no_object
from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import config_of, listing
from mmguard.words import counted


class ClassWeightLength(Cause):
    """A class weight too many or too few."""

    code = 'MG111'
    kinds = ('pixels', 'instances')
    needs = ('config',)
    blames_labels = False
    summary = 'class_weight has another length than the head has classes.'
    why = 'Too short: a CUDA assert for labels that are right. Too long: an error, or weights of other classes.'
    advice = (
        "Write one weight per class, `class_weight=[1.0] * {right}`, in the order of the classes. Only mmdet's softmax "
        'heads (Mask2Former, DETR, R-CNN) take one more, last, for background or no object: '
        '`class_weight=[1.0] * {classes_} + [0.1]`.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        return 0.96 if self._wrong(facts) else 0.0

    def words(self, facts: LabelFacts) -> Dict[str, int]:
        classes = next(iter(self._wrong(facts).values()), facts.num_classes)
        no_object = any(has_no_object(path, config_of(facts)) for path in self._wrong(facts))
        return {'right': classes + no_object, 'classes_': classes}

    def evidence(self, facts: LabelFacts) -> str:
        weights = config_of(facts).class_weights
        return listing(
            f'{path} has {counted(len(weights[path]), "entry")}, the head {counted(classes, "class")}'
            for path, classes in self._wrong(facts).items()
        )

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return {}

    def _wrong(self, facts: LabelFacts) -> Dict[str, int]:
        """Path of class weights -> classes of their head."""
        config = config_of(facts)
        found = {}
        for path, weights in config.class_weights.items():
            classes = classes_near(path, config.head_classes) or (facts.num_classes if facts.num_classes > 1 else 0)
            allowed = {classes}
            if has_no_object(path, config):
                allowed = {classes + 1}
            elif config.framework == 'mmdet':
                allowed.add(classes + 1)
            if classes and len(weights) not in allowed:
                found[path] = classes
        return found


def classes_near(path: str, head_classes: Dict[str, int]) -> int:
    """Classes of the head that a path lies in: the longest common prefix, whole words. 0: none.

    Example:
        >>> classes_near('model.head.loss.class_weight', {'model.head.num_classes': 3, 'model.neck.num_classes': 4})
        3
    """
    best, classes = 0, 0
    for head_path, number in head_classes.items():
        head = head_path.rpartition('.')[0]
        if path.startswith(head + '.') and len(head) >= best:
            things = number if len(head) > best or not best else classes + number  # things and stuff are two numbers
            best, classes = len(head), things
    return classes
