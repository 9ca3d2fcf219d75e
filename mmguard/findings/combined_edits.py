"""Combination of several edits into a single edit, which is tried as a whole."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

from mmguard.config.changes import REMOVED, Changes, Conflict, change_data, merge
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.engine import Split, holds, search, select_rules
from mmguard.findings.file_edits import KEEP_BOXES
from mmguard.findings.finding import Finding
from mmguard.findings.rule import Facts


class Offer(NamedTuple):
    """Edit that is offered for a finding."""

    finding: Finding  #: The finding.
    edit: Edit  #: One of the edits of the finding.
    facts: Facts  #: The facts that support the finding.

    def shares_finding(self, others: Sequence[Offer]) -> bool:
        """Return True if one of ``others`` is for the same finding, or its edit makes the same changes."""
        return any(self.finding is other.finding or self.edit.number == other.edit.number for other in others)


def select_first_safe(offers: Sequence[Offer]) -> List[Offer]:
    """Return the first safe edit (an edit without a question) of each finding."""
    safe = [offer for offer in offers if offer.edit.applicability == SAFE]
    return [offer for n, offer in enumerate(safe) if not offer.shares_finding(safe[:n])]


def explain_conflict(offers: Sequence[Offer]) -> str:
    """Return the reason why the edits of these offers cannot be combined, or ``''`` if they can.

    A single edit is not tried again, because it was tried when it was offered.
    """
    if len(offers) < 2:
        return ''
    numbers = ', '.join(f'[{offer.edit.number}]' for offer in offers)
    codes = [offer.finding.code for n, offer in enumerate(offers) if offer.shares_finding(offers[:n])]
    if codes:
        return f'{numbers} are alternative corrections of {codes[0]}: choose one'
    try:
        edit = combine_edits([offer.edit for offer in offers], offers[0].facts.config)
    except Conflict as error:
        return f'{numbers} conflict: they write different values at {error}'
    rules = select_rules()
    for offer in offers:
        splits = [Split(facts, search(facts, rules)) for facts in (offer.facts, *offer.facts.others)]
        if not holds(edit, offer.finding, splits, rules):
            return f'{numbers} conflict: with all of them applied, {offer.finding.code} remains or new errors appear'
    return ''


def combine_edits(edits: Sequence[Edit], config: Optional[ReadConfig] = None) -> Edit:
    """Combine several edits into one; if several edits set the same option, the last value wins.

    Args:
        edits (list[Edit]): The edits.
        config (ReadConfig, optional): The config that the edits change. If ``None``, config changes are left out.

    Raises:
        Conflict: The edits write different values at one path of the config.
    """
    files: Dict[str, Dict[str, Any]] = {}
    for edit in edits:
        for path, options in edit.files.items():
            merged = files.setdefault(path, dict(options))
            keeps = merged.get(KEEP_BOXES) and options.get(KEEP_BOXES)
            merged.update(options)
            if not keeps:  # another edit corrects boxes
                merged.pop(KEEP_BOXES, None)
    return Edit(
        ' '.join(edit.title for edit in edits),
        config=() if config is None else _merge_config(edits, config.written),
        options={name: value for edit in edits for name, value in edit.options.items()},
        files=files,
        environment={name: version for edit in edits for name, version in edit.environment.items()},
        unlabelled=tuple(label for edit in edits for label in edit.unlabelled),
    )


def _merge_config(edits: Sequence[Edit], base: Mapping[str, Any]) -> Changes:
    """Merge the config changes of all edits, because two edits may rewrite the same pipeline."""
    tree: Any = base
    for edit in edits:
        tree = merge(base, tree, change_data(base, edit.config))
    return tuple((key, tree.get(key, REMOVED)) for key in {**base, **tree} if tree.get(key, REMOVED) != base.get(key))
