from __future__ import annotations

from typing import Iterator

from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.finding import Finding
from mmguard.findings.rule import Facts, RunRule
from mmguard.findings.run import in_one_line
from mmguard.findings.unused import unused_in

_IN_THE_MODEL = 'A part of the model is used on no rank, and DistributedDataParallel waited for its gradient.'


class UnusedParametersSeen(RunRule):
    """DistributedDataParallel waited for a gradient that never came."""

    code = 'MG305'
    summary = 'Parameters got no gradient, and DistributedDataParallel waited for them.'
    why = (
        'A branch that no loss reads, in every iteration or in some: a stage that no head takes (MG226), a batch '
        'without targets, a loss that is a constant where all labels are ignored (MG218).'
    )
    advice = (
        'Write `find_unused_parameters=True` for a branch that is not always used. Where only batches without targets '
        "skip it, `dict(type='RankGuardHook')` in custom_hooks keeps the ranks in step."
    )

    def find(self, facts: Facts) -> Iterator[Finding]:
        config = facts.config
        wrapper = {} if config is None else config.part('model_wrapper_cfg')
        if config is not None and (config.data.get('find_unused_parameters') or wrapper.get('find_unused_parameters')):
            return
        errors = [rank.error for rank in facts.ranks if 'Expected to have finished reduction' in rank.error]
        if errors:
            place = f'{"model_wrapper_cfg." if wrapper else ""}find_unused_parameters'
            edit = Edit(self.advice, ASKS, 'Is the branch meant to be skipped?', ((place, True),))
            said = unused_in(rank.error for rank in facts.ranks)
            yield self.found(
                _IN_THE_MODEL if said.everywhere else self.summary,
                '; '.join(said.words) or in_one_line(errors[0]),
                edits=[edit] if config is not None else (),
            )
