"""Selection of the numbered edits that a scan offers for label files, and a check for boxes in another format."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Dict, List, NamedTuple, Sequence

from mmguard.commands.fix.copies import Copies
from mmguard.errors import CannotRun
from mmguard.facts.labels import LabelFacts
from mmguard.files.regular import read_regular
from mmguard.findings.combined_edits import Offer, combine_edits, explain_conflict, select_first_safe
from mmguard.findings.edits import ALL_SAFE
from mmguard.findings.engine import search, select_rules
from mmguard.findings.finding import INFO, Finding
from mmguard.findings.rule import Facts
from mmguard.findings.rules.labels.boxes import are_many, describe_format
from mmguard.formats.detection import find_format
from mmguard.formats.files import FILES
from mmguard.formats.format import LARGEST, CannotCorrect, Format, LabelSet
from mmguard.formats.options import FixOptions, ScanOptions
from mmguard.labels.instances import BOX_REASONS
from mmguard.scanning.executors import scan_in_processes
from mmguard.scanning.plans import Plan, plan_again, plan_format, plan_target
from mmguard.scanning.run import list_offers, run_plan
from mmguard.text import quantity, visible_name


class ScanOffers(NamedTuple):
    """Plan of a scan, and the numbered edits that the scan offers."""

    plan: Plan
    offers: List[Offer]


class ChosenEdits(NamedTuple):
    """Combined edits: options and format per file or folder, why others are left out, and the command for a config."""

    files: Dict[str, FixOptions]
    formats: Dict[str, Format]
    excluded: List[str]
    config: str
    guesses: bool  #: True if an edit asks a question.


def scan(target: str, options: ScanOptions) -> ScanOffers:
    """Scan a target as `mmguard scan` does."""
    plan = plan_target(target, options)
    results = run_plan(plan, scan_in_processes)
    if plan.failed:
        raise CannotRun('; '.join(plan.failed))
    return ScanOffers(plan, list_offers(results))


def choose(scan_offers: ScanOffers, numbers: Sequence[str]) -> ChosenEdits:
    """Combine the numbered edits per file; ``'safe'`` adds all that ask no question. Refuse edits that conflict."""
    chosen: List[Offer] = []
    left: List[str] = []
    for offer in (_find_offer(scan_offers, number) for number in dict.fromkeys(numbers) if number != ALL_SAFE):
        differs = _find_conflict(chosen, offer)
        if differs:
            raise CannotCorrect(
                f'[{offer.edit.number}] conflicts with another edit: both set {differs}; apply one at a time'
            )
        chosen.append(offer)
    against = explain_conflict(chosen)
    if against:
        raise CannotCorrect(f'{against}; nothing was written. Apply one, then scan the copy')
    safe = select_first_safe([offer for offer in scan_offers.offers if offer.edit.files])
    for offer in safe if ALL_SAFE in numbers else ():
        if offer.shares_finding(chosen):
            continue
        differs = _find_conflict(chosen, offer)
        against = f'another edit sets {differs} to another value' if differs else explain_conflict([*chosen, offer])
        if against:
            left.append(f'[{offer.edit.number}] is not applied: {against}; scan the copy again')
        else:
            chosen.append(offer)
    if not chosen:
        raise CannotCorrect(
            f'{scan_offers.plan.target}: no safe edit of label files (others need your answer); nothing was written'
        )
    edit = combine_edits([offer.edit for offer in chosen])
    files = {path: FixOptions(**options) for path, options in edit.files.items()}
    both = [str(offer.edit.number) for offer in chosen if offer.edit.config]
    formats = {
        path: find_format(offer.facts.labels)
        for offer in chosen
        for path in offer.edit.files
        if offer.facts.labels is not None
    }
    command = _build_apply(scan_offers.plan, *both) if both else ''
    return ChosenEdits(files, formats, left, command, any(offer.edit.question for offer in chosen))


def _find_conflict(offers: Sequence[Offer], offer: Offer) -> str:
    """Return the options, as ``'--a, --b'``, for which an edit and the edits chosen before have different values."""
    said = combine_edits([one.edit for one in offers]).files
    return ', '.join(
        f'--{name.replace("_", "-")}'
        for path, options in offer.edit.files.items()
        for name, value in options.items()
        if said.get(path, {}).get(name, value) != value
    )


def scan_again(plan: Plan, places: Dict[str, Path], copies: Dict[str, Copies], guesses: bool) -> str:
    """Scan the copies in place of the originals, and describe the findings; return '' if no such scan is possible."""
    is_detection = plan.tree is not None and plan.tree.framework == 'mmdet'
    if not is_detection and set(places) != {plan.target}:
        return ''
    if plan.format is not None and plan.format.renames:
        left = list_findings(plan_format(str(places[plan.target]), plan.format, plan.options))
    else:
        with FILES.replaced(_read_contents(places, copies)):
            left = list_findings(plan_again(plan, plan.tree, {}))
    codes = ', '.join(dict.fromkeys(finding.code for finding in left))
    if guesses and not left:
        changed = next((f'{place}/{one["written"]}' for path, place in places.items() for one in copies[path].done), '')
        picture = changed if plan.format is not None and plan.format.name == 'maps' else 'one image with its objects'
        return f'scanned again: every label is valid now. Look at {visible_name(picture)} to check the labels'
    return f'scanned again: {quantity(len(left), "finding")} left ({codes})' if left else 'scanned again: nothing found'


def list_findings(plan: Plan) -> List[Finding]:
    """Run a planned scan, and return its errors and warnings."""
    return [found for result in run_plan(plan) for found in result.findings if found.severity != INFO]


def _read_contents(places: Dict[str, Path], written: Dict[str, Copies]) -> Dict[str, bytes]:
    """Return {path of the original: content of its copy} for the changed copies."""
    contents = {}
    for path, copies in written.items():
        is_folder = os.path.isdir(path)
        folder, copy = (path, places[path]) if is_folder else (os.path.dirname(path), places[path].parent)
        for record in copies.done:
            if record['changes']:
                contents[os.path.join(folder, record['file'])] = read_regular(copy / record['written'], LARGEST)
    return contents


def _find_offer(scan_offers: ScanOffers, number: str) -> Offer:
    known = {str(offer.edit.number): offer for offer in reversed(scan_offers.offers)}  # the first offer of each number
    files = [name for name, offer in known.items() if offer.edit.files]
    plan = scan_offers.plan
    if number not in known:
        listed = f'it offers {", ".join(files)}' if files else 'it offers none'
        raise CannotCorrect(f'`mmguard scan {plan.target}` does not offer edit {number} of label files: {listed}')
    if number not in files:
        raise CannotCorrect(f'edit {number} changes the config. Run `{_build_apply(plan, number)}`')
    return known[number]


def _build_apply(plan: Plan, *numbers: str) -> str:
    words = ['mmguard', 'apply', plan.target, '-o', 'OUT.py', '--scan', *plan.options.build_arguments()]
    return shlex.join([*words, *(word for number in numbers for word in ('--edit', number))])


#: Codes of findings that are about single boxes if few boxes are wrong.
_SINGLE = ('MG109', 'MG152')
#: Codes of findings about boxes in another format.
_FORMATS = (*_SINGLE, 'MG164', 'MG172')


def check_boxes(target: str, data_format: Format, options: FixOptions) -> None:
    """Refuse to clamp or drop boxes that seem to have another format; the error names the command that converts them.

    The rules of the scan decide if boxes have another format. With ``boxes`` or ``keep_boxes``, all boxes are accepted.
    """
    if options.boxes or options.keep_boxes:
        return
    try:
        sets = data_format.sets(target, ScanOptions())
        labels = [source.scan().facts for source in sets.sources if isinstance(source, LabelSet)]
    except (CannotRun, OSError, ValueError):
        return  # the copying code reports why it cannot be copied
    for found in labels:
        _check(found, data_format)


def _check(labels: LabelFacts, data_format: Format) -> None:
    facts = Facts(labels)
    if labels.annotations is None:
        return
    wrong = 0 if labels.yolo is None else labels.yolo.in_pixels
    wrong += labels.boxes.over_edge + labels.boxes.negative_boxes
    wrong += sum(labels.reasons.get(name, 0) for name in BOX_REASONS)
    rules = {rule.code: rule() for rule in select_rules() if not rule.package}
    for finding in search(facts, list(map(type, rules.values()))) if wrong else ():
        edits = list(rules[finding.code].edits(finding, facts))
        is_way = finding.code not in _SINGLE or are_many(wrong, labels) or bool(labels.boxes.off_axis)
        is_other_format = finding.code in _FORMATS and (finding.code not in _SINGLE or describe_format(labels))
        converts = all(any('boxes' in options for options in edit.files.values()) for edit in edits)
        if is_way and converts and (edits or is_other_format):
            ways = replace(finding, edits=tuple(edits)).next_step
            keep = '' if labels.yolo else f' If the boxes are right, add --boxes {data_format.right_boxes}.'
            raise CannotCorrect(
                f'{finding.title} ({finding.evidence}) Clamping or dropping boxes would hide this: nothing was '
                f'written. {ways}{keep}'
            )
