"""The config with the edits that `check` or `scan` offers, by their numbers on the screen."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Sequence

from mmguard.config.changes import changed_data
from mmguard.config.merged import merged
from mmguard.config.read import ReadConfig, read_config
from mmguard.config.tree import by_name
from mmguard.errors import CannotRun
from mmguard.findings.edits import ALL_SAFE, SAFE
from mmguard.findings.engine import diagnose
from mmguard.findings.finding import Finding
from mmguard.findings.ignored_average import lowered_average
from mmguard.findings.rule import Facts
from mmguard.findings.together import Offer, objection
from mmguard.findings.wording import numbered

if TYPE_CHECKING:
    from mmguard.tools.scan.options import ScanOptions


class Edited(NamedTuple):
    """An edited config.

    Attributes:
        tree (dict): The config as plain dicts and lists.
        changed (list[str]): What was written, in words.
        codes (list[str]): The findings that are gone.
        left (list[str]): What was not written, in words: edits that ask nothing and that others exclude, label files.
    """

    tree: Dict[str, Any]
    changed: List[str]
    codes: List[str]
    left: List[str]


def edit_tree(
    source: str,
    tree: Dict[str, Any],
    wanted: Sequence[str],
    scanned: Optional[ScanOptions] = None,
    run_code: bool = False,
) -> Edited:
    """Write edits into a config, and have the rules look again. Several are tried together first.

    Args:
        source (str): The config file, or ``'mmseg::...'``.
        tree (dict): What it loads. Not written to.
        wanted (list[str]): Numbers, or ``'safe'``. Without any, no rule is evaluated.
        scanned (ScanOptions, optional): They are numbers of a scan with these options; else of a check.
        run_code (bool): Whether a config in YAML or JSON may name code.

    Raises:
        CannotRun: There is no edit of such a number, or it leaves its finding.
    """
    if not wanted:
        return Edited(tree, [], [], [])
    offers = _of_check(read_config(source, run_code)) if scanned is None else _of_scan(source, scanned)
    chosen = [_of_number(number, offers, source, scanned) for number in dict.fromkeys(wanted) if number != ALL_SAFE]
    against = objection(chosen)
    if against:
        raise CannotRun(f'{against}; nothing was written. Write one, and look again')
    averages = dict.fromkeys(lowered_average(offer.facts) for offer in offers)  # of labels: a check has none
    done = Edited(tree, [], [], [line for line in averages if line])
    for offer in chosen:
        done = _with(done, offer, tree)
        if offer.edit.files:
            number = str(offer.edit.number)
            done.left.append(f'[{number}]: the label files, which `{_fix(source, scanned, number)}` writes anew')
    if ALL_SAFE not in wanted:
        return done
    return _all_safe(done) if scanned is None else _all_safe_of_scan(done, offers, chosen, tree)


def _of_check(config: ReadConfig) -> List[Offer]:
    found = numbered(diagnose(config=config))
    return [Offer(finding, edit, Facts(config=config)) for finding in found for edit in finding.edits if edit.number]


def _of_scan(source: str, options: ScanOptions) -> List[Offer]:
    from mmguard.tools.scan.engine import scan_here
    from mmguard.tools.scan.run import offers_of, run_plan
    from mmguard.tools.scan.target import plan_of

    plan = plan_of(source, options)
    results = run_plan(plan, scan_here)
    if plan.failed:
        raise CannotRun('\n'.join(plan.failed))
    return offers_of(results)


def _of_number(number: str, offers: Sequence[Offer], source: str, scanned: Optional[ScanOptions]) -> Offer:
    known = {str(offer.edit.number): offer for offer in offers}
    if number in known and not known[number].edit.config:
        raise CannotRun(f'edit {number} rewrites label files: `{_fix(source, scanned, number)}`')
    if number not in known:
        words = shlex.join(['mmguard', *(['check', source] if scanned is None else ['scan', source, *scanned.words()])])
        there = f'there are 1 to {len(known)}' if known else 'there is none'
        other = ', and with --scan those of `mmguard scan`' if scanned is None else ''
        raise CannotRun(f'`{words}` offers no edit {number}: {there}{other}')
    return known[number]


def _fix(source: str, scanned: Optional[ScanOptions], number: str) -> str:
    words = ['mmguard', 'fix', source, '--out', 'DIR', *(scanned.words() if scanned else []), '--edit', number]
    return shlex.join(words)


def _with(done: Edited, offer: Offer, found_in: Dict[str, Any]) -> Edited:
    """One more edit, of the tree that it was found in."""
    finding, edit = offer.finding, offer.edit
    tree = merged(found_in, done.tree, changed_data(found_in, edit.config))
    left = _remaining(tree, finding)
    if left:
        raise CannotRun(f'[{edit.number}] {edit.title} leaves {finding.code} at {", ".join(left)}; nothing was written')
    line = f'{finding.code}: {", ".join(path for path, _ in edit.config)}'
    return done._replace(tree=tree, changed=[*done.changed, line], codes=[*done.codes, finding.code])


def _remaining(tree: Dict[str, Any], finding: Finding) -> List[str]:
    """The places where the rules still see it."""
    again = diagnose(config=ReadConfig(by_name(tree)))
    same = [other for other in again if other.code == finding.code]
    return sorted({place for other in same for place in other.places} & set(finding.places))


def _all_safe(done: Edited) -> Edited:
    """One after the other: an edit may change the place that the next one would."""
    while True:
        safe = _safe(_of_check(ReadConfig(by_name(done.tree))))
        if not safe:
            return done
        done = _with(done, safe[0], done.tree)


def _all_safe_of_scan(done: Edited, offers: Sequence[Offer], chosen: Sequence[Offer], tree: Dict[str, Any]) -> Edited:
    """Those that hold beside the others: the labels are looked at as well."""
    chosen = list(chosen)
    for offer in _safe(offers):
        if offer.is_of_one_of(chosen):
            continue
        against = objection([*chosen, offer])
        if against:
            done.left.append(f'[{offer.edit.number}]: {against}; scan again')
        else:
            chosen.append(offer)
            done = _with(done, offer, tree)
    return done


def _safe(offers: Sequence[Offer]) -> List[Offer]:
    """Of each finding the first edit that asks nothing, and leaves the files as they are."""
    safe = [offer for offer in offers if offer.edit.config and not offer.edit.files]
    safe = [offer for offer in safe if offer.edit.applicability == SAFE]
    return [offer for n, offer in enumerate(safe) if not offer.is_of_one_of(safe[:n])]
