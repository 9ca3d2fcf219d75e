"""Losses that some ranks lacked, and parameters without a gradient."""

from __future__ import annotations

from typing import Iterator

from mmguard.findings.finding import ERROR, WARNING, Finding
from mmguard.findings.rule import NAMED, Example, Facts, RunRule
from mmguard.findings.run import RunFacts, find_unused, format_exception
from mmguard.findings.usual_edits import propose
from mmguard.language import Message, join
from mmguard.text import quantity


class UnusedParametersSeen(RunRule):
    """DistributedDataParallel waited for a gradient that never came."""

    code = 'MG305'
    summary = 'Parameters got no gradient, and DistributedDataParallel waited for them.'
    title_model = 'A part of the model is used on no rank, and DistributedDataParallel waited for its gradient.'
    why = (
        'The loss does not use a branch of the model, in every iteration or in some: a stage that no head takes, a '
        'batch without targets, a loss that is a constant where all labels are ignored.'
    )
    example = Example(wrong='DistributedDataParallel(model)', right='find_unused_parameters=True')
    limits = 'Names of parameters are known where torch (TORCH_DISTRIBUTED_DEBUG=DETAIL) or a hook gave them.'
    advice = (
        'If the branch is meant to be skipped, write find_unused_parameters=True; where only batches without targets '
        "skip it, dict(type='RankGuardHook') in custom_hooks keeps the ranks in step. If not, use its output in a loss."
    )

    def find(self, facts: Facts) -> Iterator[Finding]:
        config = facts.config
        wrapper = {} if config is None else config.part('model_wrapper_cfg')
        if config is not None and (config.data.get('find_unused_parameters') or wrapper.get('find_unused_parameters')):
            return
        errors = [rank.error for rank in facts.ranks if 'Expected to have finished reduction' in rank.error]
        if errors:
            place = f'{"model_wrapper_cfg." if wrapper else ""}find_unused_parameters'
            title, question = (
                'Let DistributedDataParallel find unused parameters.',
                'Is the branch meant to be skipped?',
            )
            if_not = 'Use its output in a loss, or take the branch out of the model.'
            edit = propose(title, (place, True), question=question, if_not=if_not)
            said = find_unused(rank.error for rank in facts.ranks)
            title, evidence = (
                self.title_model if said.everywhere else '',
                join('; ', said.lines) or format_exception(errors[0]),
            )
            yield self.report(evidence, title=title, edits=[edit] if config is not None else ())


class LossesFilled(RunRule):
    """Losses that one rank lacked and others had."""

    code = 'MG306'
    summary = 'A rank lacked a loss that others had.'
    why = (
        'Without RankGuardHook, which puts a zero in its place, DistributedDataParallel waits forever. The zero keeps '
        'the ranks in step, but the batches of that rank do not train that branch.'
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
            Message(
                'rank {rank} had no {loss} in {iterations}; filled with zeros',
                rank=rank,
                loss=loss,
                iterations=quantity(number, 'iteration'),
            )
            for loss, by_rank in run.filled.items()
            for rank, number in sorted(by_rank.items())
        ]
        lacked += [
            Message('rank {rank} lacked a loss first in iteration {place:,}', rank=rank, place=place)
            for rank, (place, _) in sorted(run.first_filled.items())
        ]
        samples = [name for _, (_, names) in sorted(run.first_filled.items()) for name in names]
        refused = [rank.error for rank in facts.ranks if 'ranks differ in their losses' in rank.error]
        if lacked or refused:
            evidence, files = (
                join('; ', [*lacked, *map(format_exception, refused[:1])]),
                tuple(dict.fromkeys(samples))[:NAMED],
            )
            yield self.report(evidence, severity=ERROR if refused else WARNING, files=files)
