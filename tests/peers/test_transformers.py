"""Models of transformers, made small: random weights of tiny configs, nothing is downloaded."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import pytest
import torch
from loss_checks import same
from ranks import Rank, run_ranks
from torch import Tensor, nn
from transformers import (
    DetrConfig,
    DetrForObjectDetection,
    Mask2FormerConfig,
    Mask2FormerForUniversalSegmentation,
    ResNetConfig,
    RTDetrConfig,
    RTDetrForObjectDetection,
    RTDetrResNetConfig,
    SegformerConfig,
    SegformerForSemanticSegmentation,
    SwinConfig,
)

from mmguard.detection import guard_targets

NUM_CLASSES, SIZE = 5, 64
Targets = List[Dict[str, Tensor]]
_RESNET = dict(embedding_size=8, hidden_sizes=[8, 16, 16, 16], depths=[1, 1, 1, 1], layer_type='basic')
_ATTENTION = dict(
    d_model=16,
    num_queries=6,
    encoder_ffn_dim=32,
    decoder_ffn_dim=32,
    encoder_layers=1,
    decoder_layers=2,
    encoder_attention_heads=2,
    decoder_attention_heads=2,
)
_NO_TIMM = dict(backbone=None, use_timm_backbone=False, use_pretrained_backbone=False)


def rt_detr() -> nn.Module:
    config = RTDetrConfig(
        backbone_config=RTDetrResNetConfig(out_features=['stage2', 'stage3', 'stage4'], **_RESNET),
        encoder_hidden_dim=16,
        encoder_in_channels=[16, 16, 16],
        decoder_in_channels=[16, 16, 16],
        num_denoising=4,
        num_labels=NUM_CLASSES,
        **_ATTENTION,
        **_NO_TIMM,
    )
    return RTDetrForObjectDetection(config)


def detr() -> nn.Module:
    backbone = ResNetConfig(out_features=['stage4'], **_RESNET)
    config = DetrConfig(backbone_config=backbone, num_labels=NUM_CLASSES, auxiliary_loss=True, **_ATTENTION, **_NO_TIMM)
    return DetrForObjectDetection(config)


def mask2former() -> nn.Module:
    stages = ['stage1', 'stage2', 'stage3', 'stage4']
    backbone = SwinConfig(
        image_size=SIZE, embed_dim=8, depths=[1, 1, 1, 1], num_heads=[1, 1, 1, 1], window_size=2, out_features=stages
    )
    config = Mask2FormerConfig(
        backbone_config=backbone,
        num_labels=NUM_CLASSES,
        feature_size=32,
        mask_feature_size=32,
        hidden_dim=32,
        encoder_feedforward_dim=32,
        dim_feedforward=32,
        encoder_layers=1,
        decoder_layers=3,
        num_attention_heads=2,
        num_queries=6,
        train_num_points=64,
    )
    return Mask2FormerForUniversalSegmentation(config)


def segformer() -> nn.Module:
    config = SegformerConfig(
        num_labels=NUM_CLASSES,
        depths=[1, 1, 1, 1],
        hidden_sizes=[8, 8, 16, 16],
        num_attention_heads=[1, 1, 1, 1],
        decoder_hidden_size=16,
    )
    return SegformerForSemanticSegmentation(config)


#: What takes instances as targets.
DETECTORS: Dict[str, Callable[[], nn.Module]] = {'RT-DETR': rt_detr, 'DETR': detr, 'Mask2Former': mask2former}


def batch(*labels: List[int], seed: int = 0) -> Tuple[Tensor, Targets]:
    """One image per list, with one instance per label."""
    generator = torch.Generator().manual_seed(seed)
    pixels = torch.rand(len(labels), 3, SIZE, SIZE, generator=generator)
    targets = [
        {
            'class_labels': torch.tensor(one, dtype=torch.int64),
            'boxes': torch.rand(len(one), 4, generator=generator) * 0.4 + 0.3,
            'masks': (torch.rand(len(one), SIZE, SIZE, generator=generator) < 0.5).float(),
        }
        for one in labels
    ]
    return pixels, targets


def outputs_of(model: nn.Module, pixels: Tensor, targets: Targets) -> Any:
    """The model's own losses. Mask2Former takes masks and labels apart, the others take the dicts."""
    if 'Mask2Former' in type(getattr(model, 'module', model)).__name__:
        masks, labels = ([target[key] for target in targets] for key in ('masks', 'class_labels'))
        return model(pixel_values=pixels, mask_labels=masks, class_labels=labels)
    return model(pixel_values=pixels, labels=targets)


RECIPES = (Path(__file__).parents[2] / 'docs/recipes.md').read_text(encoding='utf-8')


def by_the_recipe(model: nn.Module, pixels: Tensor, targets: Targets) -> Any:
    """What docs/recipes.md says to type, run."""
    blocks = re.findall(r'```python\n(targets = .*?)```', RECIPES, re.S)
    (block,) = [block for block in blocks if ('mask_labels' in block) == ('Mask2Former' in type(model).__name__)]
    apart = {'class_labels': [one['class_labels'] for one in targets], 'mask_labels': [one['masks'] for one in targets]}
    names = {
        'guard_targets': guard_targets,
        'model': model,
        'batch': {'pixel_values': pixels, 'labels': targets, **apart},
    }
    exec(block, names)
    return names['outputs']


def step(detector: str, pixels: Tensor, targets: Targets, run: Callable[..., Any] = outputs_of) -> Dict[str, Tensor]:
    """Losses and gradients of a fresh model, always the same one, with the same dropout and noise."""
    torch.manual_seed(0)
    model = DETECTORS[detector]().train()
    outputs = run(model, pixels, targets)
    outputs.loss.sum().backward()
    losses = {'loss': outputs.loss, **(outputs.get('loss_dict') or {})}
    gradients = {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}
    return {**{name: loss.detach() for name, loss in losses.items()}, **gradients}


def picked(target: Dict[str, Tensor], places: List[int]) -> Dict[str, Tensor]:
    return {name: value[places] for name, value in target.items()}


@pytest.mark.parametrize('detector', DETECTORS)
@pytest.mark.parametrize(
    ('labels', 'valid'),
    [
        ([[1, 3], [7, 2, NUM_CLASSES], [], [-1]], [[0, 1], [1], [], []]),
        ([[7], [600, 7]], [[], []]),  # nothing is left
    ],
)
def test_guarded_targets_equal_deletion_by_hand_bit_for_bit(
    detector: str, labels: List[List[int]], valid: List[List[int]]
) -> None:
    pixels, targets = batch(*labels)
    by_hand = [picked(target, places) for target, places in zip(targets, valid)]
    assert same(step(detector, pixels, targets, by_the_recipe), step(detector, pixels, by_hand))


CHILD = """
import datetime, hashlib, os, sys, warnings
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
sys.path.insert(0, sys.argv[1])
warnings.simplefilter('ignore')
from mmguard.distributed import align_losses
from mmguard.detection import guard_targets
from test_transformers import DETECTORS, NUM_CLASSES, batch, outputs_of
dist.init_process_group('gloo', timeout=datetime.timedelta(seconds=30))
rank = dist.get_rank()

def train(detector, others, guard, align):
    torch.manual_seed(0)
    # Nobody's gradient ever reaches the last norm of some releases' Swin.
    model = DistributedDataParallel(DETECTORS[detector](), find_unused_parameters=detector == 'Mask2Former')
    optimizer = torch.optim.AdamW([one for one in model.parameters() if one.requires_grad], lr=1e-3)
    for iteration in range(5):
        labels = others if rank == 1 and iteration in (1, 2, 3) else [[0, 1], [2]]
        pixels, targets = batch(*labels, seed=10 * rank + iteration)
        if guard:
            targets = guard_targets(targets, NUM_CLASSES, label_key='class_labels', box_format='cxcywh')
        outputs = outputs_of(model, pixels, targets)
        loss = sum(align_losses(outputs.loss_dict, model).values()) if align else outputs.loss.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    numbers = torch.cat([one.detach().flatten() for one in model.parameters()])
    assert numbers.isfinite().all()
    print('PARAMETERS', detector, hashlib.sha256(numbers.numpy().tobytes()).hexdigest(), flush=True)
"""

#: The same parameters whether targets were invalid, or never there.
GUARDED = """
for others in ([[7], [7, 600]], [[], []]):
    for detector in DETECTORS:
        train(detector, others, guard=True, align=detector == 'RT-DETR')
sys.stdout.flush()
os._exit(0)  # as in ranks.py
"""


def run(child: str) -> List[Rank]:
    return run_ranks(CHILD + child, str(Path(__file__).parent), preamble='')


@pytest.mark.slow
def test_guarded_all_train_and_the_ranks_stay_bit_equal() -> None:
    ranks = run(GUARDED)
    assert [rank.returncode for rank in ranks] == [0, 0], ranks[1].output[-4000:]
    said = ranks[0].said('PARAMETERS')
    assert said == ranks[1].said('PARAMETERS')
    assert len(said) == 6
    assert said[:3] == said[3:]


@pytest.fixture
def recipe() -> Dict[str, Any]:
    """What its code block defines."""
    (block,) = [block for block in re.findall(r'```python\n(.*?)```', RECIPES, re.S) if 'compute_loss' in block]
    defined: Dict[str, Any] = {}
    exec(block[: block.index('\nloss = ')], defined)
    return defined


def label_map() -> Tensor:
    labels = torch.randint(0, NUM_CLASSES, (2, SIZE, SIZE), generator=torch.Generator().manual_seed(1))
    labels[:, :4] = 255
    return labels


def own_loss(model: Any, pixels: Tensor, labels: Tensor) -> Tensor:
    return model(pixel_values=pixels, labels=labels).loss


def segformer_step(loss_of: Callable[..., Tensor], labels: Tensor) -> Dict[str, Tensor]:
    torch.manual_seed(0)
    model, pixels = segformer().train(), torch.rand(2, 3, SIZE, SIZE)
    loss = loss_of(model, pixels, labels)
    loss.backward()
    return {'loss': loss.detach(), **{name: parameter.grad for name, parameter in model.named_parameters()}}


def guarded(recipe: Dict[str, Any]) -> Callable[..., Tensor]:
    return lambda model, pixels, labels: recipe['compute_loss'](model(pixel_values=pixels), labels)


def test_on_valid_labels_it_is_the_models_own_loss(recipe: Dict[str, Any]) -> None:
    torch.testing.assert_close(segformer_step(guarded(recipe), label_map()), segformer_step(own_loss, label_map()))
    assert not recipe['criterion'].tally().skipped


@pytest.mark.parametrize('label', [NUM_CLASSES, -1])
def test_one_pixel_ends_the_training_there_and_counts_as_ignored_here(recipe: Dict[str, Any], label: int) -> None:
    labels, ignored = label_map(), label_map()
    labels[0, 30, 5:9], ignored[0, 30, 5:9] = label, 255
    with pytest.raises(IndexError, match=str(label)):
        segformer_step(own_loss, labels)
    torch.testing.assert_close(segformer_step(guarded(recipe), labels), segformer_step(own_loss, ignored))
    assert recipe['criterion'].tally().skipped == 4


def test_without_a_pixel_to_train_its_loss_is_nan_and_ours_0(recipe: Dict[str, Any]) -> None:
    nothing = torch.full((2, SIZE, SIZE), 255)
    assert segformer_step(own_loss, nothing)['loss'].isnan()
    assert all((value == 0).all() for value in segformer_step(guarded(recipe), nothing).values())
