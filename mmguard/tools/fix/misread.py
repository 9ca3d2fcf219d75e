"""Refuse to clamp boxes that look like another box format."""

from __future__ import annotations

from dataclasses import replace

from mmguard.errors import CannotRun
from mmguard.findings.box_formats import JSON, are_many, describe_format
from mmguard.findings.edits import Edit
from mmguard.findings.engine import chosen_rules, search
from mmguard.findings.facts import LabelFacts
from mmguard.findings.rule import Facts
from mmguard.labels.instances import BOX_REASONS
from mmguard.tools.fix.options import CannotCorrect, FixOptions
from mmguard.tools.scan.plans import AnnotationSource
from mmguard.tools.scan.settings import ScanOptions
from mmguard.tools.scan.target import plan_of

#: Of single boxes, where they are few.
_SINGLE = ('MG109', 'MG152')
#: Of boxes in another format, which not every edit converts.
_FORMATS = (*_SINGLE, 'MG164', 'MG172', 'MG173')


def check_boxes(target: str, options: FixOptions) -> None:
    """Refuse boxes that seem to be in another format, of which some would be clamped or dropped: name the command.

    The rules of the scan look at them, unless the options say how they are written.
    """
    if options.boxes:
        return
    if target.endswith('.py'):  # a program, of which nothing is copied
        return
    try:
        plan = plan_of(target, ScanOptions())
        labels = [source.read() for source in plan.sources if isinstance(source, AnnotationSource)]
    except (CannotRun, OSError, ValueError):
        return  # why it cannot be copied, who copies says
    for found in labels:
        _check(found)


def _check(labels: LabelFacts) -> None:
    found, facts = labels.annotations, Facts(labels)
    if found is None:
        return
    wrong = 0 if found.yolo is None else found.yolo.in_pixels
    wrong += found.over_edge + found.negative_boxes + sum(labels.reasons.get(name, 0) for name in BOX_REASONS)
    rules = {rule.code: rule() for rule in chosen_rules()}
    for finding in search(facts, list(map(type, rules.values()))) if wrong else ():
        edits = list(rules[finding.code].edits(finding, facts))
        is_way = finding.code not in _SINGLE or are_many(wrong, found)
        is_other_format = finding.code in _FORMATS and (finding.code not in _SINGLE or describe_format(found))
        if is_way and all(map(_converts, edits)) and (edits or is_other_format):
            ways = replace(finding, edits=tuple(edits)).next_step
            option = 'sizes' if found.format in JSON else 'corners'
            as_they_are = '' if found.yolo else f' Where they are right as they are, add --boxes {option}.'
            raise CannotCorrect(
                f'{finding.title} ({finding.evidence}) To clamp or drop boxes would hide that: nothing was written. '
                f'{ways}{as_they_are}'
            )


def _converts(edit: Edit) -> bool:
    return any('boxes' in dict(options) for _, options in edit.files)
