from __future__ import annotations

import os
from typing import Iterator

from mmguard.config.rates import BATCH, LR, Rates, base_with_rates, rates_of, rates_of_file
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import ConfigRule

#: Official configs stay within 4 times their bases, for each image of a batch.
FAR = 16.0
#: Heads of DeepLab learn at 10 times the rate.
FAR_MULT = 100.0
QUESTION = 'Does the loss grow, or become nan?'


class FasterThanBase(ConfigRule):
    """Steps that are far larger than those of the config that this one stands on."""

    code = 'MG242'
    summary = 'The learning rate is far above that of the base config, for the size of the batch.'
    why = (
        'By the linear rule the rate grows with the batch. Far above it training diverges: the loss grows and becomes '
        'nan, boxes of the predictions fail assertions (generalized IoU), and the labels are suspected.'
    )
    advice = 'Write the rate of the base, times this batch size (of all devices), divided by that of the base.'
    severity = WARNING

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        mine = rates_of(config)
        scaled = config.part('auto_scale_lr').get('enable')
        base = None if mine is None or scaled else base_with_rates(config.file)
        theirs = None if base is None else rates_of_file(base)
        if mine is None or base is None or theirs is None or mine.optimizer != theirs.optimizer:
            return
        name = os.path.basename(base)
        times = mine.lr / theirs.lr * theirs.batch_size / mine.batch_size
        if times >= FAR:
            fitting = _rounded(theirs.lr * mine.batch_size / theirs.batch_size)
            yield self.at(
                LR,
                mine.lr,
                f'The learning rate is {times:,.0f} times that of {name} for each image of a batch: {LR} is '
                f'{mine.lr} with {BATCH} {mine.batch_size}, there {theirs.lr} with {theirs.batch_size}.',
                edits=[Edit(f'Write `lr={fitting}`.', ASKS, QUESTION, ((LR, fitting),))],
            )
        yield from self._multiplied(mine, theirs, name)

    def _multiplied(self, mine: Rates, theirs: Rates, name: str) -> Iterator[Finding]:
        most = max([1.0, *theirs.multiplied.values()])
        for key, value in mine.multiplied.items():
            if value / most >= FAR_MULT:
                path = f'optim_wrapper.paramwise_cfg.custom_keys.{key}.lr_mult'
                yield self.at(
                    path,
                    value,
                    f'lr_mult makes the learning rate of {key!r} {value:g} times that of the rest; in {name} none has '
                    f'more than {most:g} times.',
                    edits=[Edit('Write `lr_mult=10.0`.', ASKS, QUESTION, ((path, 10.0),))] if '.' not in key else [],
                )


def _rounded(rate: float) -> float:
    return float(f'{rate:.3g}')
