from __future__ import annotations

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import annotations_of, config_of, is_trained_on, share

#: Heads that build denoising queries from the targets of a batch.
DENOISING = ('detr', 'dino')
#: COCO itself has 1 %.
MANY = 0.02


class ImagesWithoutTarget(Cause):
    """Images without an object, where a rank may draw nothing else."""

    code = 'MG146'
    kinds = ('pixels', 'instances')
    needs = ('annotations',)
    severity = 'warning'
    blames_labels = False
    summary = 'Images without any target: a rank that draws only such images has other losses than the rest.'
    why = (
        'Under DDP the ranks then reduce different sets of tensors: the run hangs, or dies with a shape mismatch in '
        'ALLREDUCE. In DETR-like heads the denoising part is missing on that rank. The labels are right.'
    )
    advice = (
        'Leave such images out of training: `filter_cfg=dict(filter_empty_gt=True, min_size=32)`. To keep them as '
        'background, the model must give the same losses and touch the same parameters on every rank: a head that '
        'emits zero losses for an empty batch (denoising ones, too), or `find_unused_parameters=True` where only '
        'parameters, not losses, are missing.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        found = annotations_of(facts)
        part = share(found.images_without_target, found.images)
        kept = config_of(facts).filter_empty_gt
        if not is_trained_on(facts) or not part or (kept and all(kept.values())) or part == 1:
            return 0.0
        denoising = self._denoising(facts)
        if part < MANY and not denoising:
            return 0.0
        return 0.5 + 0.3 * part + (0.1 if denoising else 0.0)

    def evidence(self, facts: LabelFacts) -> str:
        found = annotations_of(facts)
        part = 100 * share(found.images_without_target, found.images)
        heads = [path for path, kind in config_of(facts).heads.items() if _denoises(kind)]
        kept = [f'{path}=False' for path, value in config_of(facts).filter_empty_gt.items() if not value]
        text = f'{found.images_without_target:,} of {found.images:,} images ({part:.3g} %)'
        return '; '.join([text, *heads, *kept])

    def values(self, facts: LabelFacts) -> dict:
        return {}

    def _denoising(self, facts: LabelFacts) -> bool:
        config = config_of(facts)
        return any(_denoises(kind) for kind in [config.framework, *config.heads.values()])


def _denoises(kind: str) -> bool:
    return any(name in kind.lower() for name in DENOISING)
