from __future__ import annotations

from typing import Iterator

from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import Facts, RunRule
from mmguard.findings.run import STOOD_STILL, ranks_in_words


class RankStoodStill(RunRule):
    """An iteration that took longer than the watchdog allows."""

    code = 'MG302'
    summary = 'An iteration took longer than the timeout of FlightRecorderHook.'
    why = 'Either one rank waits for another that does something else, or it reads, saves or evaluates for so long.'
    advice = (
        'Compare where the ranks stand, with `py-spy dump --pid PID` on each: those that wait are in a collective, the '
        'other one is the cause. Where none is stuck, raise the timeout.'
    )
    severity = WARNING

    def find(self, facts: Facts) -> Iterator[Finding]:
        still = [rank for rank in facts.ranks if rank.ending == STOOD_STILL]
        if not still or facts.ranks[0].ending != STOOD_STILL:
            return
        places = {rank.rank: rank.iteration for rank in still if rank.iteration is not None}
        behind = [rank for rank, place in places.items() if place < max(places.values())]
        said = [f'{ranks_in_words(behind, "is", "are")} behind'] if behind else []
        yield self.found(self.summary, '; '.join([*(rank.words for rank in still), *said]))
