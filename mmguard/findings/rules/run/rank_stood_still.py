from __future__ import annotations

from typing import Iterator

from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import Example, Facts, RunRule
from mmguard.findings.run import STOOD_STILL, name_ranks


class RankStoodStill(RunRule):
    """An iteration that took longer than the watchdog allows."""

    code = 'MG302'
    summary = 'An iteration took longer than the timeout of FlightRecorderHook.'
    why = 'Either one rank waits for another that does something else, or it reads, saves or evaluates for so long.'
    example = Example(wrong='timeout=60, an evaluation of 5 minutes', right='timeout=600 of FlightRecorderHook')
    limits = 'A slow disk, a long evaluation and a rank that hangs look the same from here.'
    advice = (
        'Run `py-spy dump --pid PID` on each rank. If some wait in a collective and one does not, that one is the '
        'cause; if none is stuck, raise the timeout.'
    )
    severity = WARNING

    def find(self, facts: Facts) -> Iterator[Finding]:
        still = [rank for rank in facts.ranks if rank.ending == STOOD_STILL]
        if not still or facts.ranks[0].ending != STOOD_STILL:
            return
        places = {rank.rank: rank.iteration for rank in still if rank.iteration is not None}
        late = [rank for rank, place in places.items() if place < max(places.values())]
        said = [f'{name_ranks(late, "is", "are")} in an earlier iteration'] if late else []
        yield self.report('; '.join([*(rank.words for rank in still), *said]))
