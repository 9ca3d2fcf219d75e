from __future__ import annotations

from typing import Iterator

from mmguard.findings.finding import ERROR, WARNING, Finding
from mmguard.findings.rule import NAMED, Example, Facts, RunRule
from mmguard.findings.run import RunFacts, format_exception
from mmguard.text import quantity


class LossesFilled(RunRule):
    """Losses that a rank lacked and others had."""

    code = 'MG306'
    summary = 'A rank lacked a loss that others had.'
    why = (
        'Without RankGuardHook, which puts a zero in its place, DistributedDataParallel waits for ever. A zero is what '
        'such a rank adds to the loss; but its batches teach that branch nothing.'
    )
    example = Example(wrong='return {} if no_targets else losses', right='return losses, with zeros on the graph')
    limits = 'It names samples only where RankGuardHook ran.'
    advice = (
        'If the samples have no targets, leave such images out (filter_empty_gt=True in the training set), or let the '
        'head return all of its losses. If they have targets, look for a branch that one rank skips.'
    )
    severity = WARNING

    def find(self, facts: Facts) -> Iterator[Finding]:
        run = facts.run or RunFacts()
        lacked = [
            f'rank {rank} had no {loss} in {quantity(number, "iteration")}; filled with zeros'
            for loss, by_rank in run.filled.items()
            for rank, number in sorted(by_rank.items())
        ]
        lacked += [
            f'rank {rank} lacked a loss first in iteration {place:,}'
            for rank, (place, _) in sorted(run.first_filled.items())
        ]
        samples = [name for _, (_, names) in sorted(run.first_filled.items()) for name in names]
        refused = [rank.error for rank in facts.ranks if 'ranks differ in their losses' in rank.error]
        if lacked or refused:
            evidence, files = (
                '; '.join([*lacked, *map(format_exception, refused[:1])]),
                tuple(dict.fromkeys(samples))[:NAMED],
            )
            yield self.report(evidence, severity=ERROR if refused else WARNING, files=files)
