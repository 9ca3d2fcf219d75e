from __future__ import annotations

from typing import Iterator

from mmguard.findings.finding import ERROR, INFO, Finding
from mmguard.findings.rule import Facts, RunRule
from mmguard.findings.run import MISSED_ANOTHER, RunFacts, in_one_line, ranks_in_words


class RankAbsent(RunRule):
    """Ranks that waited for another in vain, or that left nothing."""

    code = 'MG303'
    summary = 'A rank did not come, or left no record.'
    why = (
        'What the others raise (AbsentRankError, "Connection closed by peer", a timeout of NCCL) follows from it: the '
        'rank that is absent has the cause in its own log.'
    )
    advice = 'Read the log of the rank that is absent, and dmesg of its machine.'

    def find(self, facts: Facts) -> Iterator[Finding]:
        silent = (facts.run or RunFacts()).silent
        unknown = 'ended well, never began to train, or wrote it on another machine'
        said = [f'{ranks_in_words(silent)} left no record: {unknown}'] if silent else []
        if facts.ranks and facts.ranks[0].ending == MISSED_ANOTHER:
            cause = 'The ranks waited for one that did not come.'
            yield self.found(cause, '; '.join([in_one_line(facts.ranks[0].error), *said]), severity=ERROR)
        elif said:
            yield self.found('Not every rank left a record.', said[0], severity=INFO)
