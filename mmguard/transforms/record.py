"""Report that a sample carries from guard to guard and to the hook: plain data, readable without mmguard."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Dict, Mapping

from mmguard.labels.space import Rule
from mmguard.labels.tally import LABEL_GUARD, LABEL_MAP, Tally, tallies_of

Record = Dict[str, Dict[str, Any]]
LabelMap = Mapping[Any, int]
NONE: LabelMap = MappingProxyType({})


def rule_for(rule: Rule, sample: Any) -> Rule:
    """Return the rule for a sample: without its label map if an earlier guard has applied the same one."""
    label_map = rule.whole_map
    record: Record = sample.get(LABEL_GUARD) or {}
    return rule.without_map() if label_map and record.get(rule.kind, {}).get(LABEL_MAP) == label_map else rule


def leave_in_results(results: Dict[str, Any], kind: str, tally: Tally, label_map: LabelMap = NONE) -> None:
    """Attach a tally, and the applied label map, to an unpacked sample."""
    results[LABEL_GUARD] = _joined(results, kind, tally, label_map)


def leave_in_sample(sample: Any, kind: str, tally: Tally, label_map: LabelMap = NONE) -> None:
    """Attach a tally, and the applied label map, to the meta information of a packed sample."""
    # set_metainfo would copy the record deeply, which only the guards hold.
    sample.set_field(_joined(sample, kind, tally, label_map), LABEL_GUARD, field_type='metainfo')


def _joined(sample: Any, kind: str, tally: Tally, label_map: LabelMap) -> Record:
    """Return the sample's record with another look at its pixels or instances (after an earlier guard's, if any)."""
    joined: Record = dict(sample.get(LABEL_GUARD) or {})
    if kind in joined:
        tally = tallies_of({LABEL_GUARD: {kind: joined[kind]}})[kind].then(tally)
    mapped = dict(label_map) or joined.get(kind, {}).get(LABEL_MAP)
    joined[kind] = {**vars(tally), **({LABEL_MAP: mapped} if mapped else {})}
    return joined
