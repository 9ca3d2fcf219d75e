from __future__ import annotations

import re
from typing import Iterator

from mmguard.findings.finding import Finding
from mmguard.findings.rule import Example, Facts, RunRule
from mmguard.findings.run import format_exception

#: AbsentRankError of a rank that lives; mmengine, whose losses have other names on a rank; torch.
_OUT_OF_STEP = re.compile(
    r'that skipped this|lives, but|loss log variables are different across GPUs|Detected mismatch between collectives'
)


class SkippedCollective(RunRule):
    """Ranks that all live and do not do the same."""

    code = 'MG304'
    summary = 'A rank skipped a collective in which others wait, or called another one.'
    why = 'Every rank must come to the same collectives in the same order; else the others wait until a timeout.'
    example = Example(wrong='if rank == 0: dist.all_reduce(loss)', right='dist.all_reduce(loss)')
    limits = 'It reads what the first rank raised; which line skipped the collective it does not know.'
    advice = (
        'Look for a branch that only one rank takes: `if rank == 0`, a batch without targets, an early return, a '
        'metric or a checkpoint. RankGuardHook names the losses that a rank lacks, and their samples.'
    )

    def find(self, facts: Facts) -> Iterator[Finding]:
        if facts.ranks and _OUT_OF_STEP.search(facts.ranks[0].error):
            yield self.report(format_exception(facts.ranks[0].error))
