from __future__ import annotations

from typing import Iterator

from mmguard.findings.finding import Finding
from mmguard.findings.rule import Example, Facts, RunRule
from mmguard.findings.run import find_unused, format_exception
from mmguard.findings.usual_edits import propose


class UnusedParametersSeen(RunRule):
    """DistributedDataParallel waited for a gradient that never came."""

    code = 'MG305'
    summary = 'Parameters got no gradient, and DistributedDataParallel waited for them.'
    title_model = 'A part of the model is used on no rank, and DistributedDataParallel waited for its gradient.'
    why = (
        'A branch that no loss reads, in every iteration or in some: a stage that no head takes (MG226), a batch '
        'without targets, a loss that is a constant where all labels are ignored (MG220).'
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
                '; '.join(said.lines) or format_exception(errors[0]),
            )
            yield self.report(evidence, title=title, edits=[edit] if config is not None else ())
