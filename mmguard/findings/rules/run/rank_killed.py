from __future__ import annotations

from typing import Iterator

from mmguard.findings.finding import Finding
from mmguard.findings.rule import Example, Facts, RunRule
from mmguard.findings.run import KILLED, name_ranks


class RankKilled(RunRule):
    """A process that ended without a word."""

    code = 'MG301'
    summary = 'A rank was killed: it ended without an exception.'
    title = '{ranks} killed, without an exception.'
    why = 'Mostly the memory of the machine ran out, or the scheduler ended the job. What others raise follows from it.'
    example = Example(wrong='num_workers=16, 60 GB of annotations in each', right='num_workers=4')
    limits = 'A process that cannot write any more leaves no reason: the kernel or the scheduler knows it.'
    advice = (
        'Look at `dmesg | grep -i kill`, and at the log of the scheduler. If memory ran out, use fewer workers (each '
        'holds a copy of the annotations) or smaller images; if the scheduler ended the job, ask it for more time.'
    )

    def find(self, facts: Facts) -> Iterator[Finding]:
        killed = [rank for rank in facts.ranks if rank.ending == KILLED]
        if killed and facts.ranks[0].ending == KILLED:
            every = len(killed) == len(facts.ranks) > 1
            ranks = 'All ranks were' if every else name_ranks([rank.rank for rank in killed], 'was', 'were')
            yield self.report('; '.join(rank.words for rank in killed), dict(ranks=ranks))
