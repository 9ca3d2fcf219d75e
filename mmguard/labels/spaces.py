"""Valid labels of a head, of a run's record or of command-line options. Nothing here needs mmengine or torch.

:func:`mmguard.config.parts.from_config` reads them from a config tree, :func:`from_model` from a built model. Heads of
a config and built heads have the same interface, :class:`Head`.

- Pixel heads of mmseg index their scores by the label of a map, and ignore the label ``ignore_index``. A head with one
  sigmoid channel has the classes 0 and 1.
- Semantic heads of mmdet index their scores by the label of a stuff map. The head of Panoptic FPN has
  ``num_stuff_classes + 1`` channels, but its label maps contain things and stuff, because the head itself merges all
  things into one class.
- MaskFormer and Mask2Former of mmdet take things from instances and, if the data set has maps, stuff from maps; they
  skip 255 and all other labels of a map. mmseg's heads of these names take classes only from maps.
- Heads of boxes, masks and queries index their scores by the label of an instance.
- Region proposals are class agnostic: their losses get zeros instead of labels. Open-vocabulary heads look a label up
  among the class names. For both, the classes of the data set are valid.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any, Collection, Dict, Iterable, Iterator, List, Mapping, Optional, Protocol, Sequence, Tuple

from mmguard.labels import OTHERS, VOID
from mmguard.labels.instances import InstanceRule
from mmguard.labels.rules import BaseRule, LabelRule, ValidLabels

KINDS = ('pixels', 'instances')

OPTION = '--num-classes'


@dataclass(frozen=True)
class Space(ValidLabels):
    """Valid labels of one kind (pixels or instances) for one head, guard or option."""

    kind: str  #: ``'pixels'`` or ``'instances'``.
    num_classes: int  #: Number of classes, without a background after the last one.
    place: str  #: Setting that defines the number, e.g. ``'model.decode_head.num_classes'``.
    ignore_index: Optional[int] = None  #: Ignored label of label maps; ``None`` for instances.
    min_label: int = 0  #: 1 if a detector reserves 0 for the background.
    label_map: Mapping[int, int] = field(default_factory=dict)  #: Raw value -> class, as mapped by a guard.

    def build_rule(self, on_invalid: str = 'ignore') -> BaseRule:
        """Build a rule that finds invalid labels; the rule does not apply ``label_map``."""
        if self.kind == 'instances':
            return InstanceRule(self.num_classes, on_invalid, min_label=self.min_label)
        return LabelRule(self.num_classes, VOID if self.ignore_index is None else self.ignore_index, on_invalid)

    def to_json(self) -> Dict[str, Any]:
        """Convert to plain data for ``label_guard.json``."""
        return {'kind': self.kind, 'num_classes': self.num_classes, 'ignore_index': self.ignore_index}


@dataclass(frozen=True)
class LabelSpaces:
    """Valid labels of pixels and of instances; ``None`` if no head uses labels of that kind."""

    pixels: Optional[Space] = None  #: Valid labels of label maps.
    instances: Optional[Space] = None  #: Valid labels of boxes and masks.
    heads: Tuple[Space, ...] = ()  #: Valid labels of each head, including those that the two fields above come from.
    names: Tuple[str, ...] = ()  #: Class names of the data set; empty if unknown.

    def get(self, kind: str) -> Optional[Space]:
        return self.instances if kind == 'instances' else self.pixels

    def to_dict(self) -> Dict[str, Space]:
        """Return {kind: space}, without the kinds whose space is ``None``."""
        return {kind: space for kind in KINDS for space in [self.get(kind)] if space is not None}

    def override(self, other: LabelSpaces) -> LabelSpaces:
        """Return a copy in which the non-empty fields of ``other`` replace the fields of this object."""
        return replace(self, **{name: value for name, value in vars(other).items() if value})

    def find_disagreeing(self, kind: str) -> List[Space]:
        """Return the spaces of all heads for a kind of label if their numbers of classes differ, else []."""
        found = [space for space in self.heads if space.kind == kind]
        return found if len({space.num_classes for space in found}) > 1 else []


def from_options(
    num_classes: Optional[int] = None, ignore_index: Optional[int] = None, default: Optional[LabelSpaces] = None
) -> LabelSpaces:
    """Return ``default`` with the given options in place of its values; ``ignore_index`` applies only to label maps.

    Example:
        >>> from_options(num_classes=19).pixels.is_valid(255)
        True
    """
    spaces = default or LabelSpaces()
    pixels, instances = spaces.pixels, spaces.instances
    if num_classes is not None:
        pixels = replace(pixels or Space('pixels', 0, '', VOID), num_classes=num_classes, place=OPTION)
        instances = replace(instances or Space('instances', 0, ''), num_classes=num_classes, place=OPTION)
    if pixels is not None and ignore_index is not None:
        pixels = replace(pixels, ignore_index=ignore_index)
    return replace(spaces, pixels=pixels, instances=instances)


def read_label_map(record: Any) -> Dict[int, int]:
    """Return a label map as {raw value: class} without the key ``'*'``, or {} if ``record`` is not a label map."""
    try:
        return {int(raw): int(label) for raw, label in (record or {}).items() if raw != OTHERS}
    except (AttributeError, TypeError, ValueError):
        return {}


def from_record(record: Mapping[str, Any], offended: Collection[str] = ()) -> LabelSpaces:
    """Return the valid labels of a loop from the guards of its pipeline, else from the losses named in ``offended``.

    ``record`` is the loop's entry in ``label_guard.json``; ``offended`` are losses that found invalid labels.
    """
    guards, losses = record.get('guards'), record.get('losses')
    guards = guards if isinstance(guards, list) else []
    named = losses.items() if isinstance(losses, dict) else ()
    given = [(guard, 'the guard in the pipeline') for guard in _list_dicts(guards)]
    given += [(space, name) for name, loss in named if name in offended for space in _list_dicts(loss)]
    found: Dict[str, Any] = {}
    for one, place in given:
        number, ignored, first = (one.get(key) for key in ('num_classes', 'ignore_index', 'min_label'))
        for kind in KINDS:
            if isinstance(number, int) and one.get('kind') in (None, kind):
                ignored = ignored if isinstance(ignored, int) else None
                first = first if isinstance(first, int) else 0
                label_map = read_label_map(one.get('label_map'))
                found.setdefault(kind, Space(kind, number, place, ignored, first, label_map))
    names = record.get('classes')
    return LabelSpaces(**found, names=tuple(map(str, names)) if isinstance(names, list) else ())


def _list_dicts(value: Any) -> List[Dict[str, Any]]:
    return [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]


#: Kind of labels -> names of heads; the first of them in a model defines the valid labels.
GROUPS = {
    'pixels': ('decode_head', 'semantic_head', 'panoptic_head', 'auxiliary_head'),
    'instances': (
        'bbox_head', 'query_head', 'panoptic_head', 'mask_head', 'track_head', 'mask_iou_head', 'point_head',
        'glbctx_head',
    ),
}  # fmt: skip
#: Names of parts that have no labels or other labels, or that belong to a model that is not trained.
ELSEWHERE = {'rpn_head', 'rpn', 'reid', 'neck', 'backbone', 'teacher', 'teacher_model'}
#: Open-vocabulary heads, which look up labels in the class names of the data set.
OPEN_VOCABULARY = ('GroundingDINOHead', 'ATSSVLFusionHead')
#: Heads of region proposals. A built ``RPN`` of mmdet stores such a head as its ``bbox_head``.
PROPOSALS = ('RPNHead', 'GARPNHead', 'CascadeRPNHead')
#: Heads whose ``num_classes`` does not count labels, but details, depth, lanes, objectness or parts of objects.
OTHER_COUNTS = ('STDCHead', 'VPDDepthHead', 'CLRHead', *PROPOSALS, *OPEN_VOCABULARY)
#: mmseg's heads that classify queries: they have a channel for "no object", so a single class does not mean sigmoid.
MASK_QUERY_HEADS = ('MaskFormerHead', 'Mask2FormerHead')

THINGS, STUFF = 'num_things_classes', 'num_stuff_classes'
#: Default ignore_index of PyTorch's and mmdet's cross entropy.
NOT_IGNORED = -100


class Head(Protocol):
    """A head of a config (:class:`mmguard.config.parts.Part`) or of a model."""

    @property
    def path(self) -> str:
        """Path in a config, ``'model.roi_head.bbox_head[0]'``, or in a model, ``'roi_head.bbox_head.0'``."""

    def get(self, key: str, fallback: Any = None) -> Any:
        """Return an argument of the head, or ``fallback`` if it is not set."""

    def is_a(self, *names: str) -> bool:
        """Return True if the head's class or a base class has one of these names."""


def split_path(path: str) -> List[str]:
    """Split the path of a head into names, without indices."""
    return [name for name in re.split(r'[.\[\]]+', path) if name and not name.isdigit()]


def takes_labels(head: Head) -> bool:
    """Return True if ``num_classes`` of a head is the number of the classes in its labels."""
    return not (ELSEWHERE & set(split_path(head.path)) or head.is_a(*OTHER_COUNTS))


def find_group(head: Head, kind: str) -> Optional[str]:
    """Return the first name in a head's path that :data:`GROUPS` lists for ``kind``, or ``None`` if none is listed."""
    names = split_path(head.path)
    if not names or not names[-1].endswith('_head'):
        return None
    return next((name for name in names if name in GROUPS[kind]), None)


def build_spaces(head: Head) -> Iterator[Space]:
    """Yield a :class:`Space` for each kind of label that a head uses, and nothing if it does not use labels."""
    if not takes_labels(head):
        return
    group = find_group(head, 'pixels')
    if group is not None:
        number, keys = _count_pixel_classes(head, group)
        if number:
            yield Space('pixels', number, f'{head.path}.{keys}', _find_ignore_index(head, group))
    group = find_group(head, 'instances')
    if group is not None:
        things = _as_int(head.get(THINGS)) if group == 'panoptic_head' else None
        number = _as_int(head.get('num_classes')) if things is None else things
        if number:
            yield Space('instances', number, f'{head.path}.{"num_classes" if things is None else THINGS}')


def collect_label_spaces(heads: Iterable[Head], names: Sequence[str] = (), named_at: str = '') -> LabelSpaces:
    """Collect the valid labels of a model's heads. If none sets a class count, use ``len(names)`` for instances."""
    heads = list(heads)
    found = tuple(space for head in heads for space in build_spaces(head))
    instances = _choose_leading(found, 'instances')
    unknown = [head for head in heads if split_path(head.path)[-1:] != ['head']]
    if instances is None and names and unknown and not any(find_group(head, 'pixels') for head in heads):
        instances = Space('instances', len(names), named_at)
    return LabelSpaces(_choose_leading(found, 'pixels'), instances, found, tuple(names))


def _choose_leading(spaces: Sequence[Space], kind: str) -> Optional[Space]:
    """Return the space with the fewest classes in the first group of ``GROUPS`` that has a space, or ``None``."""
    for group in GROUPS[kind]:
        found = [space for space in spaces if space.kind == kind and group in split_path(space.place)]
        if found:
            return min(found, key=lambda space: space.num_classes)
    return None


def _count_pixel_classes(head: Head, group: str) -> Tuple[Optional[int], str]:
    """Return the number of classes, or ``None`` if unset, and the names of the arguments that define it."""
    things = _as_int(head.get(THINGS)) if group in ('semantic_head', 'panoptic_head') else None
    if things is not None:
        stuff = _as_int(head.get(STUFF))
        return (things + stuff, f'{THINGS} + {STUFF}') if stuff else (None, '')
    number = _as_int(head.get('num_classes')) if group != 'panoptic_head' else None
    per_channel = group in ('decode_head', 'auxiliary_head') and not head.is_a(*MASK_QUERY_HEADS)
    if per_channel and number == 1:
        number = 2
    return number, 'num_classes'


def _find_ignore_index(head: Head, group: str) -> int:
    if group == 'panoptic_head':
        return VOID
    own = _as_int(head.get('ignore_index')) if group != 'semantic_head' else head.get('ignore_label') or None
    if own is not None:
        return own
    losses = (head.get(name) for name in ('loss_decode', 'loss_seg', 'criterion'))
    loss = next((loss for loss in losses if loss is not None), None)
    found = VOID if loss is None else find_ignore_index(loss)
    # If a config leaves out ignore_index, the default of mmseg's heads applies; a built head has the value itself.
    left_out = isinstance(loss, (dict, list, tuple)) and group != 'semantic_head'
    return VOID if left_out and found == NOT_IGNORED else found


def find_ignore_index(loss: Any) -> int:
    """Return the ``ignore_index`` of a loss (config or module; the first of a list), or NOT_IGNORED if unset."""
    if not isinstance(loss, dict) and hasattr(loss, '__getitem__'):
        loss = loss[0]
    if isinstance(loss, dict):
        own = _as_int(loss.get('ignore_index'))
    else:
        own = _find_first_int([loss, getattr(loss, 'guard', None)], 'ignore_index')
    return NOT_IGNORED if own is None else own


def _as_int(value: Any) -> Optional[int]:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


class _ModuleHead:
    """A module with the interface :class:`Head`."""

    def __init__(self, path: str, module: Any) -> None:
        self.path = path
        self.module = module

    def get(self, key: str, fallback: Any = None) -> Any:
        return getattr(self.module, key, fallback)

    def is_a(self, *names: str) -> bool:
        return any(base.__name__ in names for base in type(self.module).__mro__)


def from_model(model: Any, names: Sequence[str] = ()) -> LabelSpaces:
    """Return the valid labels of a built model. If no head sets a class count, use ``len(names)`` for instances."""
    heads = (_ModuleHead(name, module) for name, module in model.named_modules())
    ends = (head for head in heads if (split_path(head.path) or [''])[-1].endswith('_head'))
    return collect_label_spaces(ends, names, 'the classes of the data set')


def from_loss(model: Any, loss_name: str) -> Dict[str, Space]:
    """Return the valid labels of a loss (``'decode_head.loss_decode.0'``) as {kind: space}, from the head that owns it.

    The loss's own ``num_classes`` overrides that of its head. A loss outside of known heads gets a space for pixels
    and one for instances. The dict is empty if no module sets a number of classes, as for region proposals.
    """
    loss, *owners = _walk_up(model, loss_name)
    own = _find_first_int([loss.module], 'num_classes')
    for owner in owners:
        found = {space.kind: space for space in build_spaces(owner)}
        if found:
            if own is not None and owner.get(THINGS) is None:
                place = f'{loss_name}.num_classes'
                found = {kind: replace(space, num_classes=own, place=place) for kind, space in found.items()}
            return found
    if any(not takes_labels(owner) for owner in owners):
        return {}
    number = _find_first_int([loss.module, *(owner.module for owner in owners)], 'num_classes')
    if number is None:
        return {}
    ignored = _find_first_int([owner.module for owner in owners], 'ignore_index')
    ignored = find_ignore_index(loss.module) if ignored is None else ignored
    return {kind: Space(kind, number, loss_name, ignored if kind == 'pixels' else None) for kind in KINDS}


def _walk_up(model: Any, name: str) -> Iterator[_ModuleHead]:
    """Yield a module, its parent, and so on up to the model."""
    parts = name.split('.')
    for depth in range(len(parts), -1, -1):
        path = '.'.join(parts[:depth])
        yield _ModuleHead(path, model.get_submodule(path))


def _find_first_int(owners: Sequence[Any], name: str) -> Optional[int]:
    values = (_as_int(getattr(owner, name, None)) for owner in owners)
    return next((value for value in values if value is not None), None)
