"""Whether a model heeds ignored instances: most stock configs train their regions as background."""

from __future__ import annotations

from typing import Any, Iterator, Optional, Set

from torch import nn

#: Assigners that leave the ignored regions out without an argument.
_ALWAYS = ('CenterRegionAssigner',)


def assigners_of(model: nn.Module) -> Iterator[Any]:
    """The assigners of all heads of a model."""
    for module in model.modules():
        for name, value in vars(module).items():
            if 'assigner' in name:
                yield from (a for a in (value if isinstance(value, (list, tuple)) else [value]) if a is not None)


def ignored_as_background(model: nn.Module) -> Optional[str]:
    """What to tell a user whose ignored instances are trained as background; ``None`` where they are not."""
    blind: Set[str] = set()
    deaf: Set[str] = set()
    for assigner in assigners_of(model):
        name = type(assigner).__name__
        threshold = getattr(assigner, 'ignore_iof_thr', None)
        if name in _ALWAYS or (threshold is not None and threshold > 0):
            continue
        (deaf if threshold is None else blind).add(name)
    if blind:
        return (
            f'instances with an invalid label were moved to the ignored ones, but {_listed(blind)} takes no notice of '
            f'them (ignore_iof_thr=-1): their regions are trained as background. Set ignore_iof_thr=0.5 in every '
            f"assigner of the model's train_cfg"
        )
    if deaf:
        return (
            f'instances with an invalid label were moved to the ignored ones, but {_listed(deaf)} knows no ignored '
            f"instances: they are trained as background. on_invalid='drop' in GuardInstanceLabels says so; only "
            f'correct labels can change it'
        )
    return None


def _listed(names: Set[str]) -> str:
    return ', '.join(sorted(names))
