"""Draw docs/images/invalid_labels.svg and write the table of docs/averages.md: the effect of invalid labels on a loss.

Usage: ``python -m tools.site.averages``, with mmseg, mmdet and matplotlib installed. Takes seconds; the seed is fixed.
The scores come from a layer that all pixels share; the figure shows the gradient of this layer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional

import torch
from torch import Tensor

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / 'docs/averages.md'
FIGURE = ROOT / 'docs/images/invalid_labels.svg'
BEGIN, END = '<!-- table: written by `python -m tools.site.averages` -->', '<!-- end of the table -->'
CLASSES, INVALID, IGNORED = 5, 7, 255
SHARES = [step / 20 for step in range(20)]
#: Treatment of the invalid labels -> style of its line.
STYLES = {
    'stock': dict(color='#c62828', marker='x', markersize=4, linewidth=1),
    'set to 255 by hand': dict(color='#ef8a00', linestyle='--'),
    'written by apply': dict(color='#6a1b9a', linestyle=':', linewidth=2),
    'guarded': dict(color='#1565c0', linewidth=3, alpha=0.6),
    'deleted': dict(color='black', linestyle='', marker='o', markersize=3, fillstyle='none'),
}


class Case(NamedTuple):
    """A loss: name, scope, configs of the stock and the guarded loss, and a function that calls it as a head does."""

    name: str
    scope: str
    stock: Dict[str, Any]
    guarded: Dict[str, Any]
    call: Callable[..., Tensor]


class Outcome(NamedTuple):
    """Loss and gradient of the shared layer; or the name of the error."""

    loss: float
    gradient: Optional[Tensor]
    error: str = ''

    @property
    def norm(self) -> float:
        return float('nan') if self.gradient is None else float(self.gradient.norm())


def _map(loss: Any, scores: Tensor, label: Tensor) -> Tensor:
    return loss(scores, label, ignore_index=IGNORED)


def _rows(scores: Tensor) -> Tensor:
    return scores.permute(0, 2, 3, 1).reshape(-1, CLASSES)


def _proposals(loss: Any, scores: Tensor, label: Tensor) -> Tensor:
    return loss(_rows(scores), label.flatten(), ignore_index=IGNORED)


def _anchors(loss: Any, scores: Tensor, label: Tensor) -> Tensor:
    """Call a loss as RetinaNet's head does: with the number of anchors as factor, and weight 0 for ignored anchors."""
    label = label.flatten()
    weight = (label != IGNORED).float()
    return loss(_rows(scores), label.masked_fill(label == IGNORED, CLASSES), weight, avg_factor=float(label.numel()))


def _guarded(**stock: Any) -> Dict[str, Any]:
    return dict(type='GuardedLoss', loss=stock)


_SIGMOID = dict(use_sigmoid=True)
_OHEM: Dict[str, Any] = dict(type='OhemCrossEntropy', thres=0.7, min_kept=500)
CASES = (
    Case('softmax cross entropy', 'mmseg', dict(type='CrossEntropyLoss'), dict(type='GuardedCrossEntropyLoss'), _map),
    Case(
        'sigmoid cross entropy',
        'mmdet',
        dict(type='CrossEntropyLoss', **_SIGMOID),
        dict(type='GuardedCrossEntropyLoss', **_SIGMOID),
        _proposals,
    ),
    Case('focal', 'mmdet', dict(type='FocalLoss'), _guarded(type='FocalLoss'), _anchors),
    Case('OHEM', 'mmseg', _OHEM, _guarded(**_OHEM), lambda loss, scores, label: loss(scores, label)),
    Case('Dice', 'mmseg', dict(type='DiceLoss'), _guarded(type='DiceLoss'), _map),
)


class Data:
    """One image of features, labels that depend on them, and the weights of the shared layer."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(0)
        self.features = torch.randn(1, 8, 48, 48, generator=generator)
        self.weights = torch.randn(CLASSES, 8, generator=generator) * 0.5
        truth = torch.randn(CLASSES, 8, generator=generator)
        self.label = torch.einsum('ck,nkhw->nchw', truth, self.features).argmax(1)
        #: The order in which labels become invalid: a larger share includes the labels of a smaller one.
        self.order = torch.randperm(self.label.numel(), generator=generator).view_as(self.label)

    def outcome(self, case: Case, how: str, share: float) -> Outcome:
        """Compute a loss with this share of invalid labels, treated as ``how``, a key of ``STYLES``."""
        weights = self.weights.clone().requires_grad_()
        scores, label = torch.einsum('ck,nkhw->nchw', weights, self.features), self.label
        invalid = self.order < share * label.numel()
        if how == 'deleted':
            scores, label = scores[:, :, ~invalid[0]].unsqueeze(2), label[~invalid][None, None]
        else:
            label = label.masked_fill(invalid, IGNORED if 'by hand' in how else INVALID)
        if how == 'written by apply':
            if case.scope != 'mmseg':  # this guard moves instances, not elements of the loss
                return Outcome(float('nan'), None)
            label = _sanitize(label)
        try:
            loss = case.call(_build(case, how in ('guarded', 'written by apply')), scores, label)
            loss.backward()
        except (IndexError, RuntimeError) as error:
            return Outcome(float('nan'), None, type(error).__name__)
        return Outcome(float(loss.detach()), weights.grad)


def _sanitize(label: Tensor) -> Tensor:
    """Sanitize a batch of one label map with the guard of a pipeline."""
    from mmguard.transforms import GuardSegLabels

    guard = GuardSegLabels(CLASSES, ignore_index=IGNORED)
    return torch.from_numpy(guard({'gt_seg_map': label[0].numpy()})['gt_seg_map'])[None]


def _build(case: Case, guarded: bool) -> Any:
    from importlib import import_module

    import_module(f'{case.scope}.models')
    import_module('mmguard.losses')
    return import_module(f'{case.scope}.registry').MODELS.build(dict(case.guarded if guarded else case.stock))


def compute_cosine(one: Tensor, other: Tensor) -> float:
    """Return the cosine of the angle between two gradients: 1 if they have the same direction."""
    return float(torch.nn.functional.cosine_similarity(one.flatten(), other.flatten(), dim=0))


def table(data: Data, share: float = 0.5) -> str:
    """Return the table of loss and gradient with invalid labels, divided by those with the invalid labels deleted."""
    ways = [how for how in STYLES if how != 'deleted']
    rows = [f'| loss | | {" | ".join(ways)} |', f'| --- | --- |{" ---: |" * len(ways)}']
    for case in CASES:
        found = {how: data.outcome(case, how, share) for how in STYLES}
        right = found.pop('deleted')
        losses = [
            one.error or ('' if one.gradient is None else f'{one.loss / right.loss:.2f}') for one in found.values()
        ]
        rows.append(f'| {case.name} ({case.scope}) | loss | {" | ".join(losses)} |')
        gradients = [
            ''
            if one.gradient is None or right.gradient is None
            else f'{one.norm / right.norm:.2f}, cosine {compute_cosine(one.gradient, right.gradient):.2f}'
            for one in found.values()
        ]
        rows.append(f'| | gradient | {" | ".join(gradients)} |')
    return '\n'.join(rows) + '\n'


def draw(data: Data) -> None:
    """Draw the figure: a row per loss, over the share of invalid labels."""
    import matplotlib

    matplotlib.use('svg')
    matplotlib.rcParams.update({'svg.hashsalt': 'mmguard', 'font.size': 11, 'svg.fonttype': 'none'})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(len(CASES), 2, figsize=(7.2, 11), sharex=True, constrained_layout=True)
    for (left, right), case in zip(axes, CASES):
        for how, style in STYLES.items():
            outcomes = [data.outcome(case, how, share) for share in SHARES]
            left.plot(SHARES, [one.loss for one in outcomes], label=how, **style)
            right.plot(SHARES, [one.norm for one in outcomes], **style)
            error = next((one.error for one in outcomes if one.error), '')
            if error:
                left.annotate(f'stock: {error}', (0.05, 0.1), xycoords='axes fraction', color=style['color'])
        left.set_title(f'{case.name} ({case.scope})', loc='left', fontsize=11)
        for axis, words in ((left, 'loss'), (right, 'gradient')):
            axis.set_ylabel(words)
            axis.set_ylim(0, axis.get_ylim()[1] * 1.05)
    for axis in axes[-1]:
        axis.set_xlabel('share of labels that are invalid')
    handles: List[Any] = axes[0][0].get_legend_handles_labels()[0]
    figure.legend(handles, list(STYLES), loc='outside upper center', ncols=2, frameon=False)
    figure.savefig(FIGURE, metadata={'Date': None})


def main() -> None:
    data = Data()
    before, _, rest = PAGE.read_text(encoding='utf-8').partition(BEGIN)
    PAGE.write_text(f'{before}{BEGIN}\n{table(data)}{END}{rest.partition(END)[2]}', encoding='utf-8')
    draw(data)


if __name__ == '__main__':
    main()
