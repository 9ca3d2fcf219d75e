from __future__ import annotations

from typing import Iterator

from mmguard.findings.finding import Finding
from mmguard.findings.rule import Facts, RunRule
from mmguard.findings.run import KILLED, ranks_in_words


class RankKilled(RunRule):
    """A process that ended without a word."""

    code = 'MG301'
    summary = 'A rank was killed: it ended without an exception.'
    why = 'Mostly the memory of the machine ran out, or the scheduler ended the job. What others raise follows from it.'
    advice = (
        'Look at `dmesg | grep -i kill`, and at the log of the scheduler. For lack of memory: fewer workers (each '
        'holds a copy of the annotations), smaller images.'
    )

    def find(self, facts: Facts) -> Iterator[Finding]:
        killed = [rank for rank in facts.ranks if rank.ending == KILLED]
        if killed and facts.ranks[0].ending == KILLED:
            every = len(killed) == len(facts.ranks) > 1
            yield self.found(
                f'{"All ranks were" if every else ranks_in_words([r.rank for r in killed], "was", "were")} killed, '
                f'without an exception.',
                '; '.join(rank.words for rank in killed),
            )
