"""The guarded config: all steps, in one tree."""

from __future__ import annotations

import copy
import warnings
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, NamedTuple

from mmguard.config.guarded_pipelines import guard_pipelines, guard_point_classes
from mmguard.config.guards import HOOK, reported
from mmguard.config.ignored_instances import heed_ignored, trained_as_background
from mmguard.config.label_spaces import from_config
from mmguard.config.read import ReadConfig
from mmguard.config.tree import by_name, is_text
from mmguard.config.types import words_of_misplaced
from mmguard.labels.spaces import LabelSpaces
from mmguard.tools.apply.losses import guard_losses

if TYPE_CHECKING:
    from mmengine.config import Config


class Guarded(NamedTuple):
    """A guarded config.

    Attributes:
        tree (dict): The config as plain dicts and lists.
        changed (list[str]): What was changed: path in the config, and how.
        left (list[str]): What could not be guarded, and why.
    """

    tree: Dict[str, Any]
    changed: List[str]
    left: List[str]


def guard_tree(tree: Dict[str, Any]) -> Guarded:
    """Guards a config: imports, hook, losses, assigners, pipelines. What is guarded already stays as it is.

    Args:
        tree (dict): A config as plain dicts and lists; types may be classes. Not written to.

    Raises:
        TypeError: A value stands where something else is taken.
    """
    tree = copy.deepcopy(tree)
    changed: List[str] = []
    read = ReadConfig(by_name(tree))
    fatal = [one for one in read.misplaced if one.fatal]
    if fatal:
        raise TypeError(words_of_misplaced(fatal))
    spaces = from_config(read)
    left = [*read.unknown_framework(), *_disagreements(spaces)]
    in_losses = guard_losses(tree)
    in_points = guard_point_classes(tree, spaces)
    in_pipelines = guard_pipelines(tree, spaces)
    in_assigners = heed_ignored(tree)
    if spaces.instances is not None:
        left.extend(trained_as_background(tree))
    changed += _add_reported(tree, read)
    changed += [*in_losses[0], *in_assigners, *in_points, *in_pipelines.changed]
    return Guarded(tree, changed, [*left, *in_losses[1], *in_pipelines.left])


def _disagreements(spaces: LabelSpaces) -> Iterator[str]:
    for kind, space in spaces.by_kind().items():
        heads = spaces.disagreeing(kind)
        if heads:
            named = ', '.join(f'{head.place}: {head.num_classes}' for head in heads)
            yield f'the heads have different numbers of classes ({named}): guarded with {space.num_classes}'


def guard_config(cfg: Config) -> Config:
    """The guarded config, one line before ``Runner.from_cfg(cfg)``.

    Hook, guards in every pipeline, losses swapped or wrapped. Assigners that took no notice of ignored instances leave
    out those with invalid labels; crowds are trained as before. ``cfg`` itself is not changed, and a config that is
    guarded comes back as it is. What could not be guarded is said in a warning.

    Args:
        cfg (Config): A config of mmseg or mmdet, of either style.

    Raises:
        TypeError: ``cfg`` is no ``mmengine.config.Config``.

    Example:
        >>> from mmengine.config import Config
        >>> cfg = Config(dict(model=dict(type='EncoderDecoder', decode_head=dict(type='FCNHead', num_classes=19))))
        >>> [hook['type'] for hook in guard_config(cfg).custom_hooks]
        ['LabelGuardHook']
    """
    from mmengine.config import Config, ConfigDict

    if not isinstance(cfg, Config):
        raise TypeError(
            f'guard_config wants an mmengine Config, got {type(cfg).__name__}: write Config.fromfile(path), or '
            f'Config(dict(...))'
        )
    guarded = copy.deepcopy(cfg)
    tree, _, left = guard_tree(tree_of(cfg, keep_imported=True))
    if left:
        lines = ''.join(f'\n  {line}' for line in left)
        warnings.warn(f'mmguard.guard_config left as it is:{lines}', stacklevel=2)
    object.__setattr__(guarded, '_cfg_dict', ConfigDict(tree))
    return guarded


def tree_of(cfg: Config, keep_imported: bool = False) -> Dict[str, Any]:
    """A config as plain dicts and lists, whose lazy classes are not loaded."""
    if hasattr(cfg, '_to_lazy_dict'):
        return cfg._to_lazy_dict(keep_imported=keep_imported)
    return cfg._cfg_dict.to_dict()  # mmengine before 0.8 knows no lazy classes


def is_lazy(tree: Dict[str, Any]) -> bool:
    """Whether types are classes, as in new-style configs."""
    type_ = tree['model'].get('type') if isinstance(tree.get('model'), dict) else None
    return type_ is not None and not is_text(type_)


def _add_reported(tree: Dict[str, Any], read: ReadConfig) -> Iterator[str]:
    for key, value in reported(read):
        if key == 'custom_imports':
            tree[key] = value
            yield "custom_imports: + 'mmguard'"
            continue
        hook = value[-1]
        if is_lazy(tree):
            from mmengine.config.lazy import LazyObject

            hook = {'type': LazyObject('mmguard', HOOK)}
        tree[key] = [*(tree.get(key) or []), hook]
        yield f'{key}: + {HOOK}'
