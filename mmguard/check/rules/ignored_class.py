from __future__ import annotations

from typing import Iterator

from mmguard.check.config import ReadConfig
from mmguard.check.finding import WARNING, ConfigFinding
from mmguard.check.head_classes import classes_in
from mmguard.check.ignored import ignored_labels
from mmguard.check.rule import Rule
from mmguard.words import counted


class IgnoredClass(Rule):
    """ignore_index that is one of the classes."""

    code = 'MG209'
    summary = 'ignore_index is a valid class.'
    why = (
        'Ignoring removes the pixels of a class, not its channel: nothing ever teaches the model that class, yet its '
        'score stays in every softmax, and at test time it may be predicted anywhere.'
    )
    advice = 'Ignore a label outside the classes (255), or take the class out of num_classes and of the class list.'
    severity = WARNING

    def find(self, config: ReadConfig) -> Iterator[ConfigFinding]:
        for place in ignored_labels(config):
            classes = classes_in(place.part if place.role == 'head' else place.part.owner)
            if place.role in ('head', 'loss') and classes is not None and 0 <= place.value < classes:
                yield self.at(
                    place.path,
                    place.value,
                    f'{place.value} is one of the {counted(classes, "class")}: 0 to {classes - 1}.',
                )
