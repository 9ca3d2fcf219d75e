from __future__ import annotations

from typing import Iterator

from mmguard.check.config import ReadConfig
from mmguard.check.finding import ConfigFinding
from mmguard.check.head_classes import Count, classes_in, counts
from mmguard.check.one_channel import output_channels
from mmguard.check.parts import transforms
from mmguard.check.rule import Rule
from mmguard.words import plural


class GuardNumClasses(Rule):
    """A guard that lets through what the head does not have."""

    code = 'MG225'
    summary = 'num_classes of a guard is not that of the head.'
    why = (
        'With too many classes the guard lets labels through that end the run; with too few it takes classes out of '
        'training that the head has.'
    )
    advice = 'Write the num_classes of the head.'

    def find(self, config: ReadConfig) -> Iterator[ConfigFinding]:
        found = counts(config)
        expected = set()
        for count in found:
            # Semantic heads of panoptic models count each thing as a class, or all of them as one.
            expected |= {count.value, count.value + 1, classes_in(count.head) or 0}
        numbers = sorted({_labels(count) for count in found if count.kind != 'stuff'})
        if not numbers:
            return
        several = f'{" or ".join(map(str, numbers))} {plural(numbers[-1], "class")}'
        for guard in transforms(config):
            classes = guard.config.get('num_classes')
            if not guard.name.startswith('Guard') or not isinstance(classes, int):
                continue
            if config.scope == 'mmseg' or guard.name == 'GuardInstanceLabels':
                agrees = classes in numbers
            else:
                agrees = classes in expected
            if not agrees:
                yield self.at(
                    guard.at('num_classes'),
                    classes,
                    f'The head tells {several} apart ({found[0].path}).',
                    f'Write num_classes={numbers[0]}.',
                )


def _labels(count: Count) -> int:
    # One sigmoid channel tells 0 from 1, also where num_classes=1 asks for it.
    return 2 if count.head.is_a('BaseDecodeHead') and output_channels(count.head) == 1 else count.value
