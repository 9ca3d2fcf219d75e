"""What DistributedDataParallel says of parameters without a gradient, of all ranks together."""

from __future__ import annotations

import re
from typing import Dict, Iterable, List, NamedTuple, Sequence, Tuple

from mmguard.text import plural, quantity

_SAID = re.compile(
    r'Parameter(?P<named>s|\s+indices) which did not receive grad for rank (?P<rank>\d+):[ \t]*(?P<list>[^\n]*)'
)
#: Parameters, or their parts, that are named.
_FEW = 8


class Unused(NamedTuple):
    """What the ranks lacked.

    Attributes:
        indices (dict[int, tuple]): Rank -> numbers of the parameters.
        names (dict[int, tuple]): Rank -> their names, where torch or a hook gave them.
    """

    indices: Dict[int, Tuple[int, ...]]
    names: Dict[int, Tuple[str, ...]]

    @property
    def everywhere(self) -> bool:
        """Whether several ranks, from the first on, lacked the same: it is in the model, and not in a batch."""
        ranks = sorted(self.indices)
        return len(ranks) > 1 and ranks == list(range(len(ranks))) and len(set(self.indices.values())) == 1

    @property
    def words(self) -> List[str]:
        """Who lacked what, a line for each group of ranks."""
        if self.everywhere:
            indices, names = next(iter(self.indices.values())), next(iter(self.names.values()), ())
            return [
                f'without a gradient on all ranks that raised ({_ranks(self.indices)}): {_described(indices, names)}'
            ]
        groups: Dict[Tuple[Tuple[int, ...], Tuple[str, ...]], List[int]] = {}
        for rank, indices in sorted(self.indices.items()):
            groups.setdefault((indices, self.names.get(rank, ())), []).append(rank)
        differ = [f'without a gradient on {_ranks(self.indices)}, which lack different ones'] if len(groups) > 1 else []
        return differ + [
            f'without a gradient on {_ranks(ranks)}: {_described(*lacked)}' for lacked, ranks in groups.items()
        ]


def _ranks(ranks: Iterable[int]) -> str:
    known = sorted(ranks)
    return f'{plural(len(known), "rank")} {_listed(known)}'


def unused_in(texts: Iterable[str]) -> Unused:
    """What exceptions of ranks say of parameters without a gradient."""
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
    """The parts of a model that parameters belong to, the innermost head of each -> how many.

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


def _described(indices: Sequence[int], names: Sequence[str]) -> str:
    if not names:
        return f'{quantity(len(indices), "parameter")}, {plural(len(indices), "number")} {_listed(indices)}'
    parts = parts_of(names)
    shown = ', '.join(f'{part} ({quantity(number, "parameter")})' for part, number in list(parts.items())[:_FEW])
    return shown + (f' and {len(parts) - _FEW} more' if len(parts) > _FEW else '')


def _listed(numbers: Sequence[int]) -> str:
    return ', '.join(map(str, numbers[:_FEW])) + (', ...' if len(numbers) > _FEW else '')
