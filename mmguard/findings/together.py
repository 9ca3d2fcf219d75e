"""Several edits that are written at once: tried as one."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple, Sequence

from mmguard.findings.edits import Edit, Split, holds
from mmguard.findings.engine import chosen_rules
from mmguard.findings.finding import Finding
from mmguard.findings.rule import Facts
from mmguard.findings.search import search


class Offer(NamedTuple):
    """An edit, and the finding that it is for.

    Attributes:
        finding (Finding): It.
        edit (Edit): One of its edits.
        facts (Facts): What it was found in.
    """

    finding: Finding
    edit: Edit
    facts: Facts

    def is_of_one_of(self, others: Sequence[Offer]) -> bool:
        """Whether one of these is for the same finding: they are two ways, of which one is written."""
        return any(self.finding is other.finding for other in others)


def objection(offers: Sequence[Offer]) -> str:
    """Why these edits must not be written at once; empty where each is right beside the others.

    One alone was tried when it was offered.
    """
    if len(offers) < 2:
        return ''
    numbers = ', '.join(f'[{offer.edit.number}]' for offer in offers)
    codes = [offer.finding.code for n, offer in enumerate(offers) if offer.is_of_one_of(offers[:n])]
    if codes:
        return f'{numbers} hold two ways to correct the same {codes[0]}: choose one'
    edit = as_one([offer.edit for offer in offers])
    rules = chosen_rules()
    for offer in offers:
        splits = [Split(facts, search(facts, rules)) for facts in (offer.facts, *offer.facts.others)]
        if not holds(edit, offer.finding, splits, rules):
            return f'{numbers} exclude each other: with all of them {offer.finding.code} stays, or more is wrong'
    return ''


def as_one(edits: Sequence[Edit]) -> Edit:
    """What several edits write; of one place or one option what the last says."""
    files: Dict[str, Dict[str, Any]] = {}
    for edit in edits:
        for path, options in edit.files:
            files.setdefault(path, {}).update(options)
    # The same change of two edits is made once: what is removed cannot be removed again.
    config = [change for edit in edits for change in edit.config]
    return Edit(
        ' '.join(edit.text for edit in edits),
        config=tuple(change for n, change in enumerate(config) if change not in config[:n]),
        options=tuple(change for edit in edits for change in edit.options),
        files=tuple((path, tuple(options.items())) for path, options in files.items()),
        environment=tuple(change for edit in edits for change in edit.environment),
        unlabelled=tuple(label for edit in edits for label in edit.unlabelled),
    )
