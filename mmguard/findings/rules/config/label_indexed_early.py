from __future__ import annotations

from typing import Iterator, List, Tuple

from mmguard.config.guards import guards_in
from mmguard.config.parts import Part, model_parts, pipelines
from mmguard.config.read import ReadConfig
from mmguard.findings.finding import INFO, Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.findings.usual_edits import guard_pipelines

#: Who indexes by label, and how. Subclasses do, too.
BY_LABEL = {
    'MaskFormerHead': 'looks up class_weight[labels]',
    'DINOHead': 'embeds the labels for denoising',
    'OHEMPixelSampler': 'gathers scores by label',
    'SimOTAAssigner': 'makes one-hot vectors of the labels',
    'DynamicSoftLabelAssigner': 'makes one-hot vectors of the labels',
    'TaskAlignedAssigner': 'gathers scores by label',
    # mmyolo's
    'BatchATSSAssigner': 'makes one-hot vectors of the labels',
    'BatchDynamicSoftLabelAssigner': 'gathers scores by label',
    'BatchTaskAlignedAssigner': 'gathers scores by label',
    'BatchYOLOv7Assigner': 'makes one-hot vectors of the labels',
    'PoseSimOTAAssigner': 'makes one-hot vectors of the labels',
}
#: Those whose subclasses, the other heads of mmyolo, leave it to an assigner.
THEMSELVES = dict.fromkeys(('YOLOv5Head', 'YOLOv5InsHead'), 'writes its targets by label')


class LabelIndexedEarly(ConfigRule):
    """A head or sampler that indexes by label before a guarded loss is called (F11)."""

    code = 'MG219'
    summary = 'Head or sampler uses labels as an index before any loss is called, and the pipeline has no guard.'
    title = '{part} {how} before any loss is called.'
    why = (
        'An invalid label ends the run there, however well the losses are guarded. Only labels that are sanitized in '
        'the pipeline protect MaskFormer, Mask2Former, DINO, OHEMPixelSampler, the YOLO family and RTMDet.'
    )
    example = Example(
        wrong="[..., dict(type='PackDetInputs')]",
        right="[..., dict(type='PackDetInputs'), dict(type='GuardInstanceLabels', num_classes=80)]",
    )
    limits = 'It knows the heads, samplers and assigners of the frameworks and what is made from them.'
    advice = (
        'Add a guard after the Pack transform of the training pipeline: GuardSegLabels for label maps, '
        'GuardInstanceLabels for boxes and masks.'
    )
    severity = INFO
    on_request = True

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        training = [pipeline for pipeline in pipelines(config) if pipeline[0].split == 'train']
        if not training or any(guards_in(pipeline) for pipeline in training):
            return
        for part, how in _find_readers(config):
            guard = 'GuardSegLabels' if config.framework == 'mmseg' else 'GuardInstanceLabels'
            ways = [guard_pipelines(config, training, guard)]
            yield self.report_at(part.at('type'), part.config['type'], dict(part=part.name, how=how), edits=ways)


def _find_readers(config: ReadConfig) -> List[Tuple[Part, str]]:
    found = []
    for part in model_parts(config):
        how = THEMSELVES.get(part.name) or next((how for name, how in BY_LABEL.items() if part.is_a(name)), None)
        if part.name == 'OHEMPixelSampler' and part.config.get('thresh') is None:
            how = None  # without a threshold it ranks by the loss, which may be guarded
        if how is not None:
            found.append((part, how))
    return found
