"""Guards for a config in memory (``guard_config``), and conversion of a config into plain dicts and lists."""

from __future__ import annotations

import copy
import warnings
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Tuple

from mmguard.config.guards import guard_tree

if TYPE_CHECKING:
    from mmengine.config import Config


class EditedTree(NamedTuple):
    """Result of applying edits to the tree of a config.

    Attributes:
        tree (dict): The edited tree.
        changed, left (list[str]): Descriptions of the changes made, and of those not made or left to the user.
        codes (list[str]): Codes of the findings that the edits fix.
        verdicts (tuple): Verdict of the verifier on each edit.
        broken (tuple): Changes that were not made because the config would fail with them.
    """

    tree: Dict[str, Any]
    changed: List[str]
    codes: List[str]
    left: List[str]
    verdicts: Tuple[Any, ...] = ()
    broken: Tuple[Any, ...] = ()


def guard_config(cfg: Config) -> Config:
    """Return a guarded copy of a config. Write ``cfg = guard_config(cfg)`` before ``Runner.from_cfg(cfg)``.

    The copy has ``LabelGuardHook``, guards in every pipeline, and guarded losses. If an assigner does not support
    ignored regions, the guards drop instances with invalid labels. Crowds are trained as before. ``cfg`` itself is not
    modified, and a guarded config is returned unchanged. A warning names the parts that could not be guarded.

    Args:
        cfg (Config): A config of mmseg or mmdet, in text or pure Python style.

    Raises:
        TypeError: ``cfg`` is not an ``mmengine.config.Config``.

    Example:
        >>> from mmengine.config import Config
        >>> cfg = Config(dict(model=dict(type='EncoderDecoder', decode_head=dict(type='FCNHead', num_classes=19))))
        >>> [hook['type'] for hook in guard_config(cfg).custom_hooks]
        ['LabelGuardHook']
    """
    from mmengine.config import Config, ConfigDict

    if not isinstance(cfg, Config):
        raise TypeError(
            f'guard_config expected an mmengine Config, got {type(cfg).__name__}: write Config.fromfile(path), or '
            f'Config(dict(...))'
        )
    guarded = copy.deepcopy(cfg)
    tree, _, left = guard_tree(build_tree(cfg, keep_imported=True))
    if left:
        lines = ''.join(f'\n  {line}' for line in left)
        warnings.warn(f'mmguard.guard_config could not guard:{lines}', stacklevel=2)
    object.__setattr__(guarded, '_cfg_dict', ConfigDict(tree))
    return guarded


def build_tree(cfg: Config, keep_imported: bool = False) -> Dict[str, Any]:
    """Return a config as plain dicts and lists, without loading its lazy classes."""
    if hasattr(cfg, '_to_lazy_dict'):
        return cfg._to_lazy_dict(keep_imported=keep_imported)
    return cfg._cfg_dict.to_dict()  # mmengine before 0.8 has no lazy classes
