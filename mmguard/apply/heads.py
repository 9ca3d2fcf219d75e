"""The classes that the heads of a model tell apart, and whether anything in it heeds ignored instances."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from mmguard.apply.tree import Path, argument, defaults_of, dotted, key_of, resolve, scope_at, type_name, walk

#: Assigners that leave ignored regions out without being told to.
_ALWAYS = ('CenterRegionAssigner',)
#: Share of an anchor or proposal inside an ignored region above which it is left out.
IGNORE_IOF_THR = 0.5
#: Heads that label instances, the most telling first.
_INSTANCE_HEADS = ('bbox_head', 'mask_head', 'panoptic_head', 'track_head')
#: What these hold is not labelled as the data set is.
_ELSEWHERE = {'rpn_head', 'semantic_head', 'reid', 'neck', 'backbone'}


class Classes(NamedTuple):
    """How many classes the labels may have; ``None``: the model has no head for them.

    Attributes:
        pixels (int, optional): Of label maps.
        ignore_index (int): What label maps leave out.
        instances (int, optional): Of boxes and masks.
        on_invalid (str): What ``GuardInstanceLabels`` does.
    """

    pixels: Optional[int]
    ignore_index: int
    instances: Optional[int]
    on_invalid: str


def classes_of(tree: Dict[str, Any], left: List[str]) -> Classes:
    """Reads the heads of ``tree['model']``; what they disagree about is told in ``left``."""
    pixels = _agreed(list(_pixel_heads(tree)), left)
    instances = _agreed(list(_instance_heads(tree)), left)
    if instances is None:
        instances = _dataset_classes(tree) if tree.get('default_scope') == 'mmdet' else None
    return Classes(pixels, _ignore_index(tree), instances, 'ignore' if any(_heeding(tree)) else 'drop')


def _agreed(found: List[Tuple[Path, int]], left: List[str]) -> Optional[int]:
    if not found:
        return None
    fewest = min(number for _, number in found)
    if any(number != fewest for _, number in found):
        named = ', '.join(f'{dotted(path)}: {number}' for path, number in found)
        left.append(f'the heads have different numbers of classes ({named}): guarded with the smallest, {fewest}')
    return fewest


def _heads(tree: Dict[str, Any]) -> Iterator[Tuple[Path, Dict[str, Any]]]:
    for path, node in walk(tree.get('model', {}), ('model',)):
        if 'type' in node:
            yield path, node


def _pixel_heads(tree: Dict[str, Any]) -> Iterator[Tuple[Path, int]]:
    for path, node in _heads(tree):
        # KNet's decode_head is a frame around others.
        inside_decoder = 'decode_head' in path and key_of(path).endswith('_head')
        if inside_decoder or key_of(path) in ('semantic_head', 'panoptic_head'):
            number = _things_and_stuff(tree, path, node, stuff=True)
            if number is None and key_of(path) != 'panoptic_head':
                number = argument(node, 'num_classes', 'MODELS', scope_at(tree, path))
                if number == 1 and _has_channels(resolve(node['type'], 'MODELS', scope_at(tree, path))):
                    number = 2  # one sigmoid channel tells 0 from 1
            if isinstance(number, int):
                yield path, number


def _has_channels(head: Optional[type]) -> bool:
    """Whether each channel of a head's output is a class, as mmseg's heads have it that are no queries."""
    return any(base.__name__ == 'BaseDecodeHead' for base in getattr(head, '__mro__', ()))


def _instance_heads(tree: Dict[str, Any]) -> Iterator[Tuple[Path, int]]:
    for wanted in _INSTANCE_HEADS:
        found = []
        for path, node in _heads(tree):
            if key_of(path) != wanted or _ELSEWHERE & set(path):
                continue
            number = _things_and_stuff(tree, path, node, stuff=False)
            if number is None:
                number = argument(node, 'num_classes', 'MODELS', scope_at(tree, path))
            if isinstance(number, int):
                found.append((path, number))
        if found:
            yield from found
            return


def _things_and_stuff(tree: Dict[str, Any], path: Path, node: Dict[str, Any], stuff: bool) -> Optional[int]:
    """Classes of panoptic heads. ``None``: no such head, or one without stuff where that is asked for."""
    if 'num_classes' in node and 'num_things_classes' not in node:
        return None  # mmseg's Mask2FormerHead leaves these two to mmdet's defaults
    scope = scope_at(tree, path)
    things, others = (argument(node, f'num_{kind}_classes', 'MODELS', scope) for kind in ('things', 'stuff'))
    if not isinstance(things, int):
        return None
    if not stuff:
        return things
    return things + others if isinstance(others, int) and others > 0 else None


def _ignore_index(tree: Dict[str, Any]) -> int:
    for path, node in _heads(tree):
        if key_of(path) in ('decode_head', 'semantic_head', 'panoptic_head'):
            loss = node.get('loss_seg')
            for owner in (node, loss if isinstance(loss, dict) else {}):
                if isinstance(owner.get('ignore_index'), int):
                    return owner['ignore_index']
    return 255


def _dataset_classes(tree: Dict[str, Any]) -> Optional[int]:
    """Of the training data set, where no head says how many there are (a region proposal network)."""
    for _, node in walk(tree.get('train_dataloader', {})):
        names = node.get('metainfo', {}).get('classes') if isinstance(node.get('metainfo'), dict) else None
        if names is None and 'type' in node and 'dataset' not in node:
            cls = resolve(node['type'], 'DATASETS', str(tree.get('default_scope') or ''))
            names = (getattr(cls, 'METAINFO', None) or {}).get('classes')
        if isinstance(names, (list, tuple)) and names:
            return len(names)
    return None


def assigners_of(tree: Dict[str, Any]) -> Iterator[Tuple[Path, Dict[str, Any]]]:
    """The assigners of all heads."""
    for path, node in _heads(tree):
        if 'assigner' in key_of(path):
            yield path, node


def _takes_threshold(tree: Dict[str, Any], path: Path, node: Dict[str, Any]) -> bool:
    cls = resolve(node['type'], 'TASK_UTILS', scope_at(tree, path))
    return 'ignore_iof_thr' in defaults_of(cls)


def _heeding(tree: Dict[str, Any]) -> Iterator[bool]:
    for path, node in assigners_of(tree):
        yield type_name(node['type']) in _ALWAYS or _takes_threshold(tree, path, node)


def heed_ignored(tree: Dict[str, Any]) -> List[str]:
    """Has every assigner that can leave out ignored regions, in place. Returns what was changed, in words."""
    changed = []
    for path, node in assigners_of(tree):
        if not _takes_threshold(tree, path, node):
            continue
        threshold = argument(node, 'ignore_iof_thr', 'TASK_UTILS', scope_at(tree, path))
        if threshold is None or threshold <= 0:
            node['ignore_iof_thr'] = IGNORE_IOF_THR
            changed.append(f'{dotted(path)}.ignore_iof_thr: {threshold} -> {IGNORE_IOF_THR}')
    return changed
