from __future__ import annotations

from typing import Any, Dict, Iterator, Optional

from mmguard.check.config import ReadConfig
from mmguard.check.finding import ConfigFinding
from mmguard.check.head_classes import classes_in, counts
from mmguard.check.parts import Part, datasets, transforms
from mmguard.check.rule import Rule


class LabelMapRange(Rule):
    """A label_map that leads out of the classes, or that nobody reads."""

    code = 'MG212'
    summary = 'label_map leads to a value that is neither a class nor ignored, or stands where nobody reads it.'
    why = (
        'What a label_map writes is what the loss sees: a value beyond the classes ends the run. MMSegmentation works '
        'its label_map out of the class names and overwrites one that is written in metainfo.'
    )
    advice = 'Map to 0 .. num_classes - 1, or to ignore_index. GuardSegLabels(label_map=...) takes a map of your own.'

    def find(self, config: ReadConfig) -> Iterator[ConfigFinding]:
        for dataset in datasets(config):
            metainfo = dataset.config.get('metainfo')
            if isinstance(metainfo, dict) and 'label_map' in metainfo and hasattr(dataset.cls, 'get_label_map'):
                yield self.at(
                    dataset.at('metainfo.label_map'),
                    metainfo['label_map'],
                    f'{dataset.name} overwrites it: labels stay as they are in the files.',
                    "Write dict(type='GuardSegLabels', num_classes=..., label_map=...) after LoadAnnotations.",
                )
        for transform in transforms(config):
            found = transform.config.get('label_map')
            classes = _classes(transform, config)
            if not isinstance(found, dict) or classes is None:
                continue
            # Instances have no ignored label: a region is ignored by its flag.
            ignored = None if transform.name == 'GuardInstanceLabels' else transform.get('ignore_index', 255)
            outside = _outside(found, classes, ignored)
            if outside:
                pairs = ', '.join(f'{raw} -> {label}' for raw, label in outside.items())
                yield self.at(
                    transform.at('label_map'),
                    found,
                    f'{pairs}: classes are 0 to {classes - 1}.',
                    f'Map to a class{"" if ignored is None else f", or to {ignored} to leave the label out"}.',
                )


def _classes(transform: Part, config: ReadConfig) -> Optional[int]:
    classes = classes_in(transform)
    if classes is None:
        return next((classes_in(count.head) for count in counts(config)), None)
    return classes


def _outside(label_map: Dict[Any, Any], classes: int, ignored: Any) -> Dict[Any, Any]:
    found = {}
    for raw, label in label_map.items():
        try:
            number = int(label)
        except (TypeError, ValueError):
            continue
        if not 0 <= number < classes and number != ignored:
            found[raw] = label
    return found
