from __future__ import annotations

from typing import Iterator

from mmguard.check.config import ReadConfig
from mmguard.check.finding import ConfigFinding
from mmguard.check.rule import Rule
from mmguard.check.stock_cross_entropy import weighted_cross_entropies


class HalfPrecisionWeights(Rule):
    """F4: the sum of weights overflows."""

    code = 'MG217'
    summary = "MMSegmentation's CrossEntropyLoss with class_weight under mixed precision (fp16)."
    why = (
        'The class weights of all pixels are added up in half precision, whose largest number is 65,504: a crop of '
        '256x256 is enough for infinity, and the loss is NaN or 0.'
    )
    advice = "Write type='GuardedCrossEntropyLoss': it averages in float32. Or dtype='bfloat16' in the optim_wrapper."

    def find(self, config: ReadConfig) -> Iterator[ConfigFinding]:
        wrapper = config.part('optim_wrapper')
        kind = str(wrapper.get('type', '')).rsplit('.', 1)[-1]
        if kind != 'AmpOptimWrapper' or wrapper.get('dtype') in ('bfloat16', 'float32', 'float64'):
            return
        for loss in weighted_cross_entropies(config):
            yield self.at(
                loss.at('class_weight'),
                loss.config['class_weight'],
                'optim_wrapper is an AmpOptimWrapper: the weights of all pixels are added up in half precision and '
                'overflow.',
            )
