"""Selection of the losses to guard, in a config or in a built model.

Parts of a config and modules are visited through the same interface, :class:`Node`.
"""

from __future__ import annotations

import inspect
from typing import Any, Callable, Iterable, NamedTuple, Optional, Tuple, Union

from mmguard.compat.stack import GUARDED_FRAMEWORKS

#: Reason for losses that ``GuardedLoss`` refuses only because a registered class guards them.
USE_OWN_CLASS_REASON = (
    "a guarded class exists for it, which also corrects errors of the stock loss. Write type='GuardedCrossEntropyLoss' "
    'with the same arguments'
)
_NO_LABELS_REASON = 'its target does not hold class labels, so no label can be out of range. Use it as it is'
_BOXES_REASON = (
    'its targets are boxes or distances, not class labels. Use it as it is and guard the classification loss'
)
_IDENTITIES_REASON = (
    'it compares identities or pairs with each other, and any integer is a valid identity. Use it as it is'
)

_BOX_LOSSES = (
    'BalancedL1Loss', 'BoundedIoULoss', 'CIoULoss', 'DIoULoss', 'DistributionFocalLoss', 'EIoULoss', 'GHMR',
    'GIoULoss', 'IoULoss', 'L1Loss', 'MSELoss', 'SIoULoss', 'SmoothL1Loss',
)  # fmt: skip
#: Losses of mmdet without class labels.
_OF_MMDET = {
    _BOXES_REASON: _BOX_LOSSES,
    _NO_LABELS_REASON: ('KnowledgeDistillationKLDivLoss',),
    _IDENTITIES_REASON: ('AssociativeEmbeddingLoss', 'L2Loss', 'MarginL2Loss', 'TripletLoss'),
    'it builds its own classification loss. Guard that loss: write its loss_cls as GuardedLoss': ('DDQAuxLoss',),
}

#: ``'scope.Class'`` of a stock loss that ``GuardedLoss`` refuses -> the reason.
REASONS = {
    'mmseg.CrossEntropyLoss': USE_OWN_CLASS_REASON,
    'mmdet.CrossEntropyLoss': USE_OWN_CLASS_REASON,
    'mmseg.HuasdorffDisstanceLoss': (
        'it sets ignored pixels to class 0 and trains on them, so an invalid pixel would be trained as class 0. '
        'Sanitize the labels in the pipeline with GuardSegLabels, or use another loss'
    ),
    'mmseg.KLDivLoss': _NO_LABELS_REASON,
    'mmseg.SiLogLoss': _NO_LABELS_REASON,
    **{f'mmdet.{name}': reason for reason, names in _OF_MMDET.items() for name in names},
}
#: Stock losses with dense targets, which are never used as class indices.
DENSE = ('mmdet.VarifocalLoss', 'mmdet.DiceLoss', 'mmdet.GaussianFocalLoss', 'mmdet.MultiPosCrossEntropyLoss')

#: Arguments and attributes of heads whose loss takes no class labels, whatever its type.
_WITHOUT_CLASSES = ('loss_centerness',)
#: Heads that compute the classification loss themselves, from unchanged labels: a ``loss_cls`` is never called.
_HEADS_WITHOUT_LOSS = ('SSDHead', 'FreeAnchorRetinaHead', 'AutoAssignHead')
_NO_LOSS_REASON = (
    'it computes its classification loss without a loss object, so its only guard is GuardInstanceLabels in the '
    'pipeline'
)
#: Heads whose losses are not guarded -> the reason.
_UNGUARDED_HEADS = {'LinearReIDHead': 'compares identities (re-identification), whose labels mmguard does not guard'}

#: Second name of arguments and attributes that hold a loss. Losses of PyTorch under this name have no class labels.
_OTHER_NAME = 'criterion'

Path = Tuple[Union[str, int], ...]


class LossDecision(NamedTuple):
    """Decision on how to guard a loss."""

    is_cross_entropy: bool = False  #: True if GuardedCrossEntropyLoss replaces the loss.
    is_wrapped: bool = False  #: True if a GuardedLoss may wrap the loss.
    framework: str = 'mmseg'  #: The scope of the guard: ``'mmseg'`` or ``'mmdet'``.
    reason: str = ''  #: Reason why the loss is left unchanged; empty if it is guarded or invalid labels do not harm it.

    @property
    def is_guarded(self) -> bool:
        return self.is_cross_entropy or self.is_wrapped


class Node(NamedTuple):
    """A part of a config, or a module."""

    name: str  #: Name of its class; empty for a list or a dict without a type.
    cls: Optional[type]  #: Its class, or ``None`` if unknown.
    scope: str  #: Framework in which its type is looked up.
    children: Iterable[Tuple[Union[str, int], Any]]  #: (key, part) for each part inside this part.


class SelectedLoss(NamedTuple):
    """A loss, or a head without a loss object, with its ``decision``. ``part`` is a module, or a dict of a config."""

    path: Path
    part: Any
    name: str
    decision: LossDecision

    def describe_left(self, place: str, reason: str = '') -> str:
        """Return a line that says why the loss at ``place`` is left unchanged."""
        return f'{place}: {self.name} is left unchanged: {reason or self.decision.reason}'


def is_guarded_type(name: str) -> bool:
    """Return True if a class name begins with ``Guarded``, as those of all guarded losses do."""
    return name.startswith('Guarded')


def is_loss_name(key: Union[str, int]) -> bool:
    """Return True if an argument or attribute of this name holds a loss."""
    return 'loss' in str(key) or key == _OTHER_NAME


def visit_losses(
    part: Any,
    open_node: Callable[[Any, Path], Node],
    visit: Callable[[SelectedLoss], bool],
    path: Path = (),
    owner: Optional[Node] = None,
    is_loss: bool = False,
    is_stock: bool = False,
) -> None:
    """Call ``visit`` with each loss that is not guarded yet, including losses that cannot be guarded.

    ``visit`` returns True if it guarded the loss. If it returns False for a loss that should be guarded, the losses
    inside that loss are visited, too. ``owner`` is the nearest part around ``part`` that has a class. If ``is_stock``
    is true, only losses of the frameworks are visited.
    """
    node = open_node(part, path)
    if is_loss and node.name:
        is_own = node.cls is None or get_package(node.cls) not in GUARDED_FRAMEWORKS
        if is_guarded_type(node.name) or (is_stock and is_own):
            return
        found = SelectedLoss(path, part, node.name, _decide_in(owner, node))
        if visit(found) or not found.decision.is_guarded:
            return
        is_stock = True
    skips_loss = node.cls is not None and not is_loss and _find_name(node.cls, _HEADS_WITHOUT_LOSS) != ''
    if skips_loss:
        visit(SelectedLoss(path, part, node.name, LossDecision(reason=_NO_LOSS_REASON)))
    # A head with with_cls=False may build its default loss_cls, and never calls it.
    with_cls = part.get('with_cls') if isinstance(part, dict) else getattr(part, 'with_cls', None)
    for key, child in node.children:
        if key not in _WITHOUT_CLASSES and not (key == 'loss_cls' and (skips_loss or with_cls is False)):
            is_named = is_loss_name(key) or (is_loss and not node.name)
            inside = (*path, key), node if node.name else owner, is_named, is_stock or key == _OTHER_NAME
            visit_losses(child, open_node, visit, *inside)


def _decide_in(owner: Optional[Node], node: Node) -> LossDecision:
    head = '' if owner is None or owner.cls is None else _find_name(owner.cls, _UNGUARDED_HEADS)
    if owner is not None and head:
        return LossDecision(reason=f'{owner.name} {_UNGUARDED_HEADS[head]}')
    if node.cls is None:
        return LossDecision(reason='its class is not registered, so mmguard cannot tell what it does')
    return decide(node.cls, node.scope)


def get_package(cls: type) -> str:
    return cls.__module__.partition('.')[0]


def _find_name(cls: type, names: Any) -> str:
    return next((base.__name__ for base in inspect.getmro(cls) if base.__name__ in names), '')


def decide(cls: type, scope: str = '') -> LossDecision:
    """Decide how to guard losses of a class; ``scope`` is the framework to assume for a class of another package."""
    names = [f'{get_package(base)}.{base.__name__}' for base in inspect.getmro(cls)]
    package, _, name = names[0].partition('.')
    framework = next((one for one in (package, scope) if one in GUARDED_FRAMEWORKS), 'mmseg')
    if name == 'CrossEntropyLoss' and package in GUARDED_FRAMEWORKS:
        return LossDecision(is_cross_entropy=True, framework=framework)
    refused = {*DENSE, *(one for one, reason in REASONS.items() if reason is not USE_OWN_CLASS_REASON)}
    known = next((one for one in names if one in refused), '')
    is_harmful = package != 'mmdet' and REASONS.get(known) is not _NO_LABELS_REASON
    return LossDecision(False, not known, framework, REASONS.get(known, '') if is_harmful else '')
