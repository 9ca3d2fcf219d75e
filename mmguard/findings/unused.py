"""DistributedDataParallel's errors about parameters without a gradient, of all ranks together."""

from __future__ import annotations

import re
from typing import Dict, Iterable, List, NamedTuple, Sequence, Tuple

from mmguard.text.words import counted, plural

_SAID = re.compile(
    r'Parameter(?P<named>s|\s+indices) which did not receive grad for rank (?P<rank>\d+):[ \t]*(?P<list>[^\n]*)'
)
#: Parameters, or their parts, that are named.
_FEW = 8


class Unused(NamedTuple):
    """Parameters without a gradient.

    Attributes:
        indices (dict[int, tuple]): Rank -> numbers of the parameters.
        names (dict[int, tuple]): Rank -> their names, where torch or a hook gave them.
    """

    indices: Dict[int, Tuple[int, ...]]
    names: Dict[int, Tuple[str, ...]]

    @property
    def everywhere(self) -> bool:
        """True if several ranks, from the first on, lacked the same: the cause is in the model, not in a batch."""
        ranks = sorted(self.indices)
        return len(ranks) > 1 and ranks == list(range(len(ranks))) and len(set(self.indices.values())) == 1

    @property
    def lines(self) -> List[str]:
        """Lines that say which ranks lacked what, one for each group of ranks."""
        if self.everywhere:
            indices, names = next(iter(self.indices.values())), next(iter(self.names.values()), ())
            return [
                f'without a gradient on all ranks that raised ({_ranks(self.indices)}): {_describe(indices, names)}'
            ]
        groups: Dict[Tuple[Tuple[int, ...], Tuple[str, ...]], List[int]] = {}
        for rank, indices in sorted(self.indices.items()):
            groups.setdefault((indices, self.names.get(rank, ())), []).append(rank)
        differ = [f'without a gradient on {_ranks(self.indices)}, which lack different ones'] if len(groups) > 1 else []
        return differ + [
            f'without a gradient on {_ranks(ranks)}: {_describe(*lacked)}' for lacked, ranks in groups.items()
        ]


def _ranks(ranks: Iterable[int]) -> str:
    known = sorted(ranks)
    return f'{plural(len(known), "rank")} {_list(known)}'


def find_unused(texts: Iterable[str]) -> Unused:
    """Collect what exceptions of ranks say about parameters without a gradient."""
    found = Unused({}, {})
    for text in texts:
        for said in _SAID.finditer(text):
            rank = int(said.group('rank'))
            if said.group('named') == 's':
                found.names[rank] = tuple(name.strip() for name in said.group('list').split(',') if name.strip())
            else:
                found.indices[rank] = tuple(int(one) for one in re.findall(r'\d+', said.group('list')))
    return found


def parts_of(names: Sequence[str]) -> Dict[str, int]:
    """Count the parameters of each part of a model, by the innermost head.

    Example:
        >>> parts_of(['roi_head.mask_head.convs.0.weight', 'roi_head.mask_head.convs.0.bias', 'backbone.norm.bias'])
        {'roi_head.mask_head': 2, 'backbone.norm': 1}
    """
    parts: Dict[str, int] = {}
    for name in names:
        steps = name.split('.')
        heads = [place for place, step in enumerate(steps) if 'head' in step]
        part = '.'.join(steps[: heads[-1] + 1] if heads else steps[:2] if len(steps) > 2 else steps)
        parts[part] = parts.get(part, 0) + 1
    return parts


def _describe(indices: Sequence[int], names: Sequence[str]) -> str:
    if not names:
        return f'{counted(len(indices), "parameter")}, {plural(len(indices), "number")} {_list(indices)}'
    parts = parts_of(names)
    shown = ', '.join(f'{part} ({counted(number, "parameter")})' for part, number in list(parts.items())[:_FEW])
    return shown + (f' and {len(parts) - _FEW} more' if len(parts) > _FEW else '')


def _list(numbers: Sequence[int]) -> str:
    return ', '.join(map(str, numbers[:_FEW])) + (', ...' if len(numbers) > _FEW else '')
