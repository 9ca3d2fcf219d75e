"""Functions that apply the numbered edits of `check` or `scan` to the tree of a config."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence

from mmguard.commands.apply.guarded import EditedTree
from mmguard.config.changes import REMOVED, change_data, merge
from mmguard.config.read import ReadConfig, read_config
from mmguard.config.tree import name_types
from mmguard.errors import CannotRun
from mmguard.findings.combined_edits import Offer, explain_conflict, select_first_safe
from mmguard.findings.edits import ALL_SAFE
from mmguard.findings.engine import Verifier, diagnose
from mmguard.findings.finding import Finding
from mmguard.findings.messages import number_edits
from mmguard.findings.rule import Facts
from mmguard.text import shorten

if TYPE_CHECKING:
    from mmguard.formats.options import ScanOptions


def edit_tree(
    source: str,
    tree: Dict[str, Any],
    numbers: Sequence[str],
    verifier: Verifier,
    scanned: Optional[ScanOptions] = None,
    run_code: bool = False,
) -> EditedTree:
    """Apply the edits ``numbers`` to a copy of a config tree, and check the copy with the rules and ``verifier``.

    Edits that conflict are refused. The numbers are those of a scan with the options ``scanned``, or of a check if
    ``scanned`` is ``None``; ``'safe'`` means all edits that need no answer.
    """
    if scanned is None:
        offers = _find_check_edits(read_config(source, run_code))
    else:
        from mmguard.commands.fix.edits import scan

        offers = scan(source, scanned).offers
    chosen = [_find_offer(number, offers, source, scanned) for number in dict.fromkeys(numbers) if number != ALL_SAFE]
    against = explain_conflict(chosen)
    if against:
        raise CannotRun(f'{against}; nothing was written. Apply one, then run `mmguard check` on the result')
    done = EditedTree(tree, [], [], [])
    for offer in chosen:
        done = _apply_edit(done, offer, tree, verifier)
        if done.broken:
            raise CannotRun(f'{done.left[-1]}; nothing was written')
        if offer.edit.files:
            command = _build_fix(source, scanned, str(offer.edit.number))
            done.left.append(f'[{offer.edit.number}]: run `{command}`, and train with the copies that it writes')
    if ALL_SAFE not in numbers:
        return done
    return (
        _apply_all_safe(done, verifier)
        if scanned is None
        else _apply_safe_of_scan(done, offers, chosen, tree, verifier)
    )


def _find_check_edits(config: ReadConfig) -> List[Offer]:
    found = number_edits(diagnose(config=config))
    return [Offer(finding, edit, Facts(config=config)) for finding in found for edit in finding.edits if edit.number]


def _find_offer(number: str, offers: Sequence[Offer], source: str, scanned: Optional[ScanOptions]) -> Offer:
    known = {str(offer.edit.number): offer for offer in reversed(offers)}  # the first offer of each number
    if number in known and not known[number].edit.config:
        raise CannotRun(f'edit {number} changes label files. Run `{_build_fix(source, scanned, number)}`')
    if number not in known:
        called = ['check', source] if scanned is None else ['scan', source, *scanned.build_arguments()]
        words = shlex.join(['mmguard', *called])
        there = f'its edits are 1 to {len(known)}' if known else 'it offers no edits'
        other = '; with --scan, the numbers are those of `mmguard scan`' if scanned is None else ''
        raise CannotRun(f'`{words}` does not offer edit {number}: {there}{other}')
    return known[number]


def _build_fix(source: str, scanned: Optional[ScanOptions], number: str) -> str:
    options = scanned.build_arguments() if scanned else []
    return shlex.join(['mmguard', 'fix', source, '--out', 'DIR', *options, '--edit', number])


def _apply_edit(edited: EditedTree, offer: Offer, found_in: Dict[str, Any], verifier: Verifier) -> EditedTree:
    """Apply an edit that was offered for the tree ``found_in``; if the config then fails, only record it as broken."""
    finding, edit = offer.finding, offer.edit
    tree = merge(found_in, edited.tree, change_data(found_in, edit.config))
    left = _find_remaining(tree, finding)
    if left:
        raise CannotRun(f'[{edit.number}] does not fix {finding.code} at {", ".join(left)}; nothing was written')
    verdicts = edited.verdicts
    if not edit.files:  # a config for other files cannot be built before they are written
        verdicts += (verifier(ReadConfig(name_types(edited.tree)), ReadConfig(name_types(tree))),)
    if any(verdict.state == 'broken' for verdict in verdicts):
        line = f'[{edit.number}] breaks a config that worked before: {verdicts[-1].reason}'
        return edited._replace(left=[*edited.left, line], broken=(*edited.broken, edit.config))
    written = (f'{path} = {"(removed)" if value is REMOVED else shorten(value)}' for path, value in edit.config)
    line = f'{finding.code}: {", ".join(written)}'
    return edited._replace(
        tree=tree, changed=[*edited.changed, line], codes=[*edited.codes, finding.code], verdicts=verdicts
    )


def _find_remaining(tree: Dict[str, Any], finding: Finding) -> List[str]:
    """Return the paths of ``finding`` at which the edited ``tree`` still has a finding with the same code."""
    again = diagnose(config=ReadConfig(name_types(tree)))
    same = [other for other in again if other.code == finding.code]
    return sorted({place for other in same for place in other.places} & set(finding.places))


def _apply_all_safe(edited: EditedTree, verifier: Verifier) -> EditedTree:
    """Apply safe edits one by one, because an edit may move the part of the config that the next edit changes."""
    while True:
        offers = _select_safe(_find_check_edits(ReadConfig(name_types(edited.tree))))
        safe = [offer for offer in offers if offer.edit.config not in edited.broken]
        if not safe:
            return edited
        edited = _apply_edit(edited, safe[0], edited.tree, verifier)


def _apply_safe_of_scan(
    edited: EditedTree, offers: Sequence[Offer], chosen: Sequence[Offer], tree: Dict[str, Any], verifier: Verifier
) -> EditedTree:
    """Apply the safe edits of a scan that conflict neither with the chosen edits nor with each other."""
    chosen = list(chosen)
    for offer in _select_safe(offers):
        if offer.shares_finding(chosen):
            continue
        against = explain_conflict([*chosen, offer])
        if against:
            edited.left.append(f'[{offer.edit.number}]: {against}; scan again')
        else:
            chosen.append(offer)
            edited = _apply_edit(edited, offer, tree, verifier)
    return edited


def _select_safe(offers: Sequence[Offer]) -> List[Offer]:
    """Return the first edit of each finding that neither asks a question nor changes label files."""
    return select_first_safe([offer for offer in offers if offer.edit.config and not offer.edit.files])
