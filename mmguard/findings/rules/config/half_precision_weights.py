from __future__ import annotations

from typing import Iterator

from mmguard.config.read import ReadConfig
from mmguard.config.stock_cross_entropy import weighted_cross_entropies
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule
from mmguard.findings.usual_edits import guarded


class HalfPrecisionWeights(ConfigRule):
    """F4: the sum of weights overflows.

    Not under ``AmpOptimWrapper``: CUDA's autocast adds up in float32. DeepSpeed makes the model itself half.
    """

    code = 'MG217'
    summary = "MMSegmentation's CrossEntropyLoss with class_weight in a model of half precision (DeepSpeed, fp16)."
    why = (
        'The class weights of all pixels are added up in half precision, whose largest number is 65,504: a crop of '
        '256x256 is enough for infinity, and the loss is NaN.'
    )
    advice = "Write type='GuardedCrossEntropyLoss': it averages in float32. Or bf16 instead of fp16 in the strategy."

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        strategy = config.part('strategy')
        half = strategy.get('fp16')
        kind = str(strategy.get('type', '')).rsplit('.', 1)[-1]
        if kind != 'DeepSpeedStrategy' or not isinstance(half, dict) or half.get('enabled') is not True:
            return
        for loss in weighted_cross_entropies(config):
            yield self.at(
                loss.at('class_weight'),
                loss.config['class_weight'],
                'strategy.fp16 makes the model half precision: the weights of all pixels are added up in it and '
                'overflow.',
                edits=[guarded(config, [loss.path], self.advice)],
            )
