"""The tallies that a sample carries to the hook."""

from __future__ import annotations

from typing import Any, Dict

from mmguard.labels.tally import LABEL_GUARD, Tally


def leave_in_results(results: Dict[str, Any], kind: str, tally: Tally) -> None:
    """Leaves a tally in a sample that is not packed yet."""
    results[LABEL_GUARD] = _joined(results.get(LABEL_GUARD), kind, tally)


def leave_in_sample(sample: Any, kind: str, tally: Tally) -> None:
    """Leaves a tally in the meta information of a packed sample."""
    # set_metainfo would copy deeply; the tally is ours alone.
    sample.set_field(_joined(sample.get(LABEL_GUARD), kind, tally), LABEL_GUARD, field_type='metainfo')


def _joined(record: Any, kind: str, tally: Tally) -> Dict[str, Tally]:
    """The sample's record with one more look at its pixels or instances (an earlier guard's, if there was one)."""
    joined = dict(record or {})
    joined[kind] = joined[kind].then(tally) if kind in joined else tally
    return joined
