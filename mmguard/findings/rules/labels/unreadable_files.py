from __future__ import annotations

from typing import Dict, List, Optional

from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import LIKELY
from mmguard.findings.rule import DataRule, Example
from mmguard.findings.rules.labels.wrong_records import NO_FOLDER, is_about_records
from mmguard.findings.views import annotations_of, listing, maps_of

#: A file that is not there has a cause of its own.
MISSING = 'missing'


class UnreadableFiles(DataRule):
    """Files that cannot be decoded."""

    code = 'MG132'
    shows_values = False
    kinds = ('pixels', 'instances')
    needs = ()
    summary = 'Files cannot be read.'
    title = 'Files cannot be read: {reasons}.'
    why = 'The loader fails at the iteration that draws them; a truncated file may decode to rows of 0.'
    example = Example(
        wrong='a Git LFS pointer of 130 bytes in place of 7.png',
        right='git lfs pull',
    )
    limits = 'A file that can be read may still be cut short in a way that its format does not show.'
    advice = (
        'Copy or export these files again (check free space, and that Git LFS pointers were replaced: `git lfs pull`), '
        'or leave them out of the split.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        return LIKELY if self._reasons(facts) else None

    def describe(self, facts: LabelFacts) -> Dict[str, str]:
        return {'reasons': listing(self._reasons(facts), 4)}

    def evidence(self, facts: LabelFacts) -> str:
        return '; '.join(f'{reason}: {listing(paths, 3)}' for reason, paths in self._reasons(facts).items())

    def files(self, facts: LabelFacts) -> List[str]:
        return [path for paths in self._reasons(facts).values() for path in paths]

    def _reasons(self, facts: LabelFacts) -> Dict[str, List[str]]:
        found: Dict[str, List[str]] = {}
        for reason, paths in maps_of(facts).unreadable.items():
            if paths and reason != MISSING:
                found.setdefault(reason, []).extend(paths)
        for reason, paths in annotations_of(facts).unreadable.items():
            if paths and reason != NO_FOLDER and not is_about_records(reason):
                found.setdefault(reason, []).extend(paths)
        return found
