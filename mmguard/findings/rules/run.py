"""Rules about distributed training: skipped collectives, missing ranks, unused parameters and missing losses."""

from __future__ import annotations

import re
from typing import Iterator

from mmguard.facts.run import MISSED_ANOTHER, RunFacts, find_unused, format_exception, name_ranks
from mmguard.findings.finding import ERROR, INFO, WARNING, Finding
from mmguard.findings.rule import MAX_FILES_NAMED, Example, Facts, RunRule
from mmguard.language import Message, join
from mmguard.text import quantity

#: Errors of live ranks that reached different collectives, raised by mmguard (AbsentRankError), mmengine or torch.
_OUT_OF_STEP = re.compile(
    r'skipped this|(?:lives|is alive), but|loss log variables are different across GPUs|'
    r'Detected mismatch between collectives'
)


class SkippedCollective(RunRule):
    code = 'MG304'
    follows = ('MG303', 'MG452', 'MG453', 'MG454')
    summary = 'A rank skipped a collective for which other ranks wait, or called a different collective.'
    why = 'Every rank must call the same collectives in the same order; otherwise the other ranks wait until a timeout.'
    example = Example(wrong='if rank == 0: dist.all_reduce(loss)', right='dist.all_reduce(loss)')
    limits = 'Only the error of one rank is read, so mmguard does not know which line skipped the collective.'
    advice = (
        'Look for a branch that only one rank takes: `if rank == 0`, a batch without targets, an early return, a '
        'metric or a checkpoint. RankGuardHook names the losses missing on a rank, and the samples of that rank.'
    )

    def find(self, facts: Facts) -> Iterator[Finding]:
        if facts.ranks and _OUT_OF_STEP.search(facts.ranks[0].error):
            yield self.report(format_exception(facts.ranks[0].error))


class RankAbsent(RunRule):
    code = 'MG303'
    follows = ('MG454', 'MG456')
    summary = 'A rank did not join the other ranks, or left no record of its end.'
    title = 'The other ranks waited for a rank that did not join them.'
    title_silent = 'At least one rank left no record of its end.'
    why = (
        'The errors of the other ranks (AbsentRankError, "Connection closed by peer", a timeout of NCCL) are only a '
        'consequence: the cause is in the log of the missing rank.'
    )
    example = Example(wrong='if rank == 0: validate()', right='validate() on every rank')
    limits = 'A rank that ended normally, or wrote its record on another machine, looks like a missing rank.'
    advice = 'Read the log of the missing rank, and dmesg of its machine. If the rank ended normally, change nothing.'

    def find(self, facts: Facts) -> Iterator[Finding]:
        silent = (facts.run or RunFacts()).silent
        unknown = Message(
            'such a rank may have ended normally, never started training, or written its record on another machine'
        )
        said = (
            [Message('{ranks} left no record: {unknown}', ranks=name_ranks(silent), unknown=unknown)] if silent else []
        )
        if facts.ranks and facts.ranks[0].ending == MISSED_ANOTHER:
            yield self.report(join('; ', [format_exception(facts.ranks[0].error), *said]), severity=ERROR)
        elif said:
            yield self.report(said[0], title=self.title_silent, severity=INFO)


class UnusedParametersSeen(RunRule):
    code = 'MG305'
    follows = ('MG450',)
    summary = 'Parameters got no gradient, and DistributedDataParallel waited for their gradients.'
    title_model = 'A part of the model is not used on any rank, and DistributedDataParallel waited for its gradient.'
    why = (
        'In some or all iterations, the loss does not depend on a branch of the model: no head reads a backbone stage, '
        'a batch has no targets, or a loss is constant because all labels are ignored.'
    )
    example = Example(wrong='DistributedDataParallel(model)', right='find_unused_parameters=True')
    limits = 'Parameters are named only if torch (TORCH_DISTRIBUTED_DEBUG=DETAIL) or a hook recorded their names.'
    advice = (
        'If the parameters may be skipped, write find_unused_parameters=True; if only batches without targets skip '
        "them, dict(type='RankGuardHook') in custom_hooks keeps the ranks in step. Otherwise, use them in a loss."
    )

    def find(self, facts: Facts) -> Iterator[Finding]:
        errors = [rank.error for rank in facts.ranks if 'Expected to have finished reduction' in rank.error]
        if errors:
            said = find_unused(rank.error for rank in facts.ranks)
            evidence = join('; ', said.lines) or format_exception(errors[0])
            yield self.report(evidence, title=self.title_model if said.everywhere else '')


class LossesFilled(RunRule):
    code = 'MG306'
    follows = ('MG452',)
    summary = 'A loss was missing on a rank, but not on other ranks.'
    why = (
        'DistributedDataParallel hangs if a loss is missing on one rank. RankGuardHook replaces the missing loss by '
        'zero, which keeps the ranks in step, but the rank then trains nothing with this loss.'
    )
    example = Example(wrong='return {} if no_targets else losses', right='return losses, with zeros on the graph')
    limits = 'Samples are named only if RankGuardHook ran.'
    advice = (
        'If the samples have no targets, leave their images out (filter_empty_gt=True in the training set), or let the '
        'head return all of its losses. If the samples have targets, look for a branch that one rank skips.'
    )
    severity = WARNING

    def find(self, facts: Facts) -> Iterator[Finding]:
        run = facts.run or RunFacts()
        lacked = [
            Message(
                'rank {rank} had no {loss} in {iterations}; filled with zeros',
                rank=rank,
                loss=loss,
                iterations=quantity(number, 'iteration'),
            )
            for loss, by_rank in run.filled.items()
            for rank, number in sorted(by_rank.items(), key=lambda item: (len(item[0]), item[0]))
        ]
        lacked += [
            Message('a loss was first missing on rank {rank} in iteration {place:,}', rank=rank, place=place)
            for rank, (place, _) in sorted(run.first_filled.items())
        ]
        samples = [name for _, (_, names) in sorted(run.first_filled.items()) for name in names]
        refused = [rank.error for rank in facts.ranks if 'ranks differ in their losses' in rank.error]
        if lacked or refused:
            evidence, files = (
                join('; ', [*lacked, *map(format_exception, refused[:1])]),
                tuple(dict.fromkeys(samples))[:MAX_FILES_NAMED],
            )
            yield self.report(evidence, severity=ERROR if refused else WARNING, files=files)
