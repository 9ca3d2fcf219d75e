from __future__ import annotations

from typing import Iterator, Optional, Tuple

from mmguard.config.parts import Part, heads
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import ConfigRule, Facts

#: Heads of mmseg that pool an image to 1x1 and normalise what is left: one value per channel and image.
POOLING = ('PSPHead', 'ASPPHead', 'UPerHead', 'APCHead')
#: What takes its averages over the batch; of the second kind over all devices.
BATCH_NORMS, SYNCED = ('BN', 'BN1d', 'BN2d', 'BatchNorm2d'), ('SyncBN', 'MMSyncBN', 'SyncBatchNorm')


class BatchOfOne(ConfigRule):
    """A single value per channel in front of BatchNorm."""

    code = 'MG241'
    looks_at = ('config', 'labels')
    summary = 'A batch of one image, and a head that pools it to 1x1 in front of BatchNorm.'
    why = (
        'BatchNorm needs two values per channel to train: "Expected more than 1 value per channel when training". '
        'SyncBN counts those of all devices; on one device, or without a process group, it is BatchNorm.'
    )
    advice = 'Write `batch_size=2` or more in train_dataloader, or a norm without the batch: dict(type="GN").'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        found = _head(config)
        loader = config.part('train_dataloader')
        if found is None or loader.get('batch_size') != 1:
            return
        head, norm = found
        synced = norm in SYNCED
        yield self.at(
            'train_dataloader.batch_size',
            1,
            f'{head.name} pools each image to 1x1 in front of {norm}, and a batch has one image'
            f'{": on a single device training ends there" if synced else ""}.',
            severity=WARNING if synced else None,
            edits=[Edit('Write `batch_size=2` in train_dataloader.', SAFE, '', (('train_dataloader.batch_size', 2),))],
        )

    def find(self, facts: Facts) -> Iterator[Finding]:
        yield from super().find(facts)
        labels, config = facts.labels, facts.config
        if labels is None or config is None or labels.split != 'train' or _head(config) is None:
            return
        loader = config.part('train_dataloader')
        size = loader.get('batch_size')
        last = labels.files % size if isinstance(size, int) and size > 1 else 0
        sampler = loader.get('sampler')
        infinite = isinstance(sampler, dict) and 'Infinite' in str(sampler.get('type'))
        if last != 1 or infinite or loader.get('drop_last'):
            return
        yield self.at(
            'train_dataloader.batch_size',
            size,
            f'{labels.files:,} images in batches of {size} leave one over: BatchNorm behind a 1x1 pooling cannot train '
            f'on the last batch of an epoch.',
            severity=WARNING,
            edits=[
                Edit('Write `drop_last=True` in train_dataloader.', SAFE, '', (('train_dataloader.drop_last', True),))
            ],
        )

    def weigh(self, found: Finding, labels: LabelFacts) -> float:
        return 0.9 if found.severity != WARNING else found.likelihood


def _head(config: ReadConfig) -> Optional[Tuple[Part, str]]:
    """The first head that pools to 1x1 in front of a norm over the batch, and that norm."""
    if config.scope != 'mmseg':
        return None
    for head in heads(config):
        norm = head.get('norm_cfg')
        kind = str(norm.get('type')).rsplit('.', 1)[-1] if isinstance(norm, dict) else ''
        if kind in (*BATCH_NORMS, *SYNCED) and head.is_a(*POOLING) and _pools_to_one(head):
            return head, kind
    return None


def _pools_to_one(head: Part) -> bool:
    scales = head.get('pool_scales')
    return not isinstance(scales, (list, tuple)) or 1 in scales
