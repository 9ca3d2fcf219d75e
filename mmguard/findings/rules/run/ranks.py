"""Ranks that were killed, skipped a collective or were missing."""

from __future__ import annotations

import re
from typing import Iterator

from mmguard.findings.finding import ERROR, INFO, Finding
from mmguard.findings.rule import Example, Facts, RunRule
from mmguard.findings.run import KILLED, MISSED_ANOTHER, RunFacts, format_exception, name_ranks
from mmguard.language import Message, join


class RankKilled(RunRule):
    """A process that ended without a message."""

    code = 'MG301'
    summary = 'A rank was killed: it ended without an exception.'
    title = '{ranks} killed, without an exception.'
    why = (
        'Most often the machine ran out of memory, or the scheduler ended the job. The errors of the other ranks are '
        'a consequence.'
    )
    example = Example(wrong='num_workers=16, 60 GB of annotations in each', right='num_workers=4')
    limits = 'A killed process cannot record the reason: look for it in the logs of the kernel or the scheduler.'
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


#: AbsentRankError of a rank that lives; mmengine, whose losses have other names on a rank; torch.
_OUT_OF_STEP = re.compile(
    r'that skipped this|lives, but|loss log variables are different across GPUs|Detected mismatch between collectives'
)


class SkippedCollective(RunRule):
    """Ranks that are all alive but are not in the same collective."""

    code = 'MG304'
    summary = 'A rank skipped a collective in which others wait, or called another one.'
    why = 'Every rank must come to the same collectives in the same order; otherwise the others wait until a timeout.'
    example = Example(wrong='if rank == 0: dist.all_reduce(loss)', right='dist.all_reduce(loss)')
    limits = 'It reads what the first rank raised, and does not know which line skipped the collective.'
    advice = (
        'Look for a branch that only one rank takes: `if rank == 0`, a batch without targets, an early return, a '
        'metric or a checkpoint. RankGuardHook names the losses that a rank lacks, and their samples.'
    )

    def find(self, facts: Facts) -> Iterator[Finding]:
        if facts.ranks and _OUT_OF_STEP.search(facts.ranks[0].error):
            yield self.report(format_exception(facts.ranks[0].error))


class RankAbsent(RunRule):
    """Ranks that waited for another in vain, or left no record."""

    code = 'MG303'
    summary = 'A rank did not join the others, or left no record.'
    title = 'The ranks waited for one that did not join them.'
    title_silent = 'Not every rank left a record.'
    why = (
        'What the others raise (AbsentRankError, "Connection closed by peer", a timeout of NCCL) is only a '
        'consequence: the cause is in the log of the missing rank.'
    )
    example = Example(wrong='if rank == 0: validate()', right='validate() on every rank')
    limits = 'A rank that ended normally, or wrote its record on another machine, looks the same.'
    advice = (
        'Read the log of the missing rank, and dmesg of its machine. If it ended normally, nothing needs to be done.'
    )

    def find(self, facts: Facts) -> Iterator[Finding]:
        silent = (facts.run or RunFacts()).silent
        unknown = Message(
            'it may have ended normally, never started training, or written its record on another machine'
        )
        said = (
            [Message('{ranks} left no record: {unknown}', ranks=name_ranks(silent), unknown=unknown)] if silent else []
        )
        if facts.ranks and facts.ranks[0].ending == MISSED_ANOTHER:
            yield self.report(join('; ', [format_exception(facts.ranks[0].error), *said]), severity=ERROR)
        elif said:
            yield self.report(said[0], title=self.title_silent, severity=INFO)
