"""Why a pixel of one value became another in its place: a loader's cast, its maps, a guard."""

from __future__ import annotations

from typing import Any, Dict, List

from mmguard.tools.trace.snapshot import Snapshot


def origin_in_loader(raw: int, label: int, transform: Any, before: Snapshot, after: Snapshot) -> str:
    """Why ``raw`` became ``label``, as far as the transform's attributes can explain it.

    mmseg's loader casts to uint8, then shifts (``reduce_zero_label``), then maps (``label_map``), in this order.
    """
    assert after.label is not None
    name = after.step
    rule = getattr(transform, 'rule', None)
    if rule is not None and hasattr(rule, 'label_map'):
        if raw in rule.label_map:
            return f'label_map of {name}: {{{raw}: {rule.label_map[raw]}}}'
        return f'{name} sanitizes it: on_invalid={rule.on_invalid!r}'
    reasons: List[str] = []
    value = raw
    if after.label.dtype == 'uint8' and not 0 <= value <= 255:
        value %= 256
        reasons.append(f'{name} casts to uint8: {raw} wraps to {value} (modulo 256)')
    if getattr(transform, 'reduce_zero_label', False):
        shifted = 255 if value in (0, 255) else value - 1
        if shifted != value:
            reasons.append(f'reduce_zero_label: {value} to {shifted}')
        value = shifted
    maps: Dict[int, int] = before.label_map
    if value in maps:
        if maps[value] != value:
            reasons.append(f'label_map of the data set: {{{value}: {maps[value]}}}')
        value = maps[value] % 256 if after.label.dtype == 'uint8' else maps[value]
    if value != label or not reasons:
        return f'{name} maps {raw} to {label}'
    return ', then '.join(reasons)
