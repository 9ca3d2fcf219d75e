from __future__ import annotations

from typing import Iterator

from mmguard.check.config import ReadConfig
from mmguard.check.finding import ERROR, WARNING, ConfigFinding
from mmguard.check.head_classes import classes_in
from mmguard.check.ignored import ignored_labels, leading
from mmguard.check.rule import Rule


class IgnoredLabelsAgree(Rule):
    """One label is ignored, and every part must know which."""

    code = 'MG208'
    summary = 'Head, losses, metric and fill values do not ignore the same label.'
    why = (
        'What one part fills in to be ignored, another trains on: as a class, or, beyond the classes, until an index '
        'error or CUDA assert ends the run. A metric that ignores another label counts pixels that nobody labelled. In '
        "MMDetection it is the semantic head of panoptic models, whose default does not ignore the loader's 255. What "
        'albumentations turns or pads it fills with 0, the first class, unless told otherwise.'
    )
    advice = 'Write the same ignore_index everywhere, 255 unless there is a reason.'

    def find(self, config: ReadConfig) -> Iterator[ConfigFinding]:
        places = ignored_labels(config)
        first = leading(config, places)
        if first is None:  # ignore_index=None, for masked binary cross entropy; a detector without a semantic head
            return
        classes = classes_in(first.part)
        for place in places:
            if place.value == first.value or place is first:
                continue
            of = f'the head ignores {first.value} ({first.path})'
            is_class = classes is not None and 0 <= place.value < classes
            if place.role == 'fill':
                becomes = f'class {place.value}' if is_class else 'a label that the head does not have'
                message = f'Fills pixels with {place.value}, but {of}: they are trained as {becomes}.'
            elif place.role == 'metric':
                message = f'Leaves {place.value} out of the evaluation, but {of}.'
            elif place.role == 'reads':
                message = f'Takes {place.value} for the ignored label, but {of}.'
            else:
                message = f'Ignores {place.value}, but {of}.'
            severe = place.role in ('loss', 'head') or (place.role == 'fill' and not is_class)
            key = place.path.rsplit('.', 1)[-1]
            # Some know but one value.
            here = '' if place.path == place.part.path else f'Write {key}={first.value}, or '
            there = f'ignore_index={place.value} in {"the loss of " * (config.scope == "mmdet")}the head.'
            default = '' if place.written else f' {place.value} is the default of {place.part.name}.'
            yield self.at(
                place.path,
                place.value,
                message + default,
                here + there if here else f'Write {there}',
                ERROR if severe else WARNING,
            )
