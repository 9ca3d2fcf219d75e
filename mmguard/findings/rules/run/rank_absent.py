from __future__ import annotations

from typing import Iterator

from mmguard.findings.finding import ERROR, INFO, Finding
from mmguard.findings.rule import Example, Facts, RunRule
from mmguard.findings.run import MISSED_ANOTHER, RunFacts, format_exception, name_ranks


class RankAbsent(RunRule):
    """Ranks that waited for another in vain, or that left nothing."""

    code = 'MG303'
    summary = 'A rank did not come, or left no record.'
    title = 'The ranks waited for one that did not come.'
    title_silent = 'Not every rank left a record.'
    why = (
        'What the others raise (AbsentRankError, "Connection closed by peer", a timeout of NCCL) follows from it: the '
        'missing rank has the cause in its own log.'
    )
    example = Example(wrong='if rank == 0: validate()', right='validate() on every rank')
    limits = 'A rank that ended well, or wrote its record on another machine, looks the same.'
    advice = (
        'Read the log of the missing rank, and dmesg of its machine. If it ended well, nothing is to be done for it.'
    )

    def find(self, facts: Facts) -> Iterator[Finding]:
        silent = (facts.run or RunFacts()).silent
        unknown = 'ended well, never began to train, or wrote it on another machine'
        said = [f'{name_ranks(silent)} left no record: {unknown}'] if silent else []
        if facts.ranks and facts.ranks[0].ending == MISSED_ANOTHER:
            yield self.report('; '.join([format_exception(facts.ranks[0].error), *said]), severity=ERROR)
        elif said:
            yield self.report(said[0], title=self.title_silent, severity=INFO)
