from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Optional

import pytest
from mmengine.structures import BaseDataElement

from mmguard.hooks.ledger import SCALARS, SEEN, Ledger, LossCount, Span
from mmguard.tally import LABEL_GUARD, Tally


def sample(path: str, pixels: Optional[Tally] = None, instances: Optional[Tally] = None) -> BaseDataElement:
    record = {kind: tally for kind, tally in (('pixels', pixels), ('instances', instances)) if tally is not None}
    element = BaseDataElement(metainfo=dict(seg_map_path=path))
    if record:
        element.set_field(record, LABEL_GUARD, field_type='metainfo')
    return element


def tally(source: str, skipped: int = 0, remapped: int = 0, value: int = 11, total: int = 100) -> Tally:
    return Tally(total, skipped, remapped, {value: skipped + remapped} if skipped + remapped else {}, source)


def batch() -> Span:
    return Span.of(
        [
            sample('a.png', tally('a.png', skipped=3)),
            sample('b.png', tally('b.png')),
            sample('c.png'),
            sample('d.png', tally('d.png', remapped=2), tally('d.png', skipped=1, total=5)),
        ]
    )


def test_a_span_adds_up_what_the_samples_carry() -> None:
    span = batch()
    assert (span.iterations, span.offending_iterations, span.samples, span.offending_samples) == (1, 1, 4, 2)
    assert (span.pixels.total, span.pixels.skipped, span.pixels.remapped) == (300, 3, 2)
    assert (span.instances.total, span.instances.skipped, span.instances.remapped) == (5, 1, 0)
    assert [t.source for t in span.offending] == ['a.png', 'd.png', 'd.png']


def test_a_clean_span_is_false_and_no_offending_iteration() -> None:
    span = Span.of([sample('b.png', tally('b.png')), sample('c.png')])
    assert not span
    assert span.offending_iterations == span.offending_samples == 0
    span.see_losses({'loss': LossCount(seen=10)}, [])
    assert not span
    span.see_losses({'loss': LossCount(seen=10, remapped=1)}, [])
    assert span
    assert span.offending_iterations == 1


def test_spans_add_up() -> None:
    both = batch()
    later = batch()
    later.see_losses({'x': LossCount(10, 1, 0), 'y': LossCount(10, 0, 2)}, [tally('c.png', skipped=1)])
    both.add(later)
    both.add(Span(iterations=1, samples=4))
    assert (both.iterations, both.offending_iterations, both.samples, both.offending_samples) == (3, 2, 12, 4)
    assert both.vector() == [6, 4, 2, 0, 1, 2, 600, 10, 20]
    assert len(both.vector()) == len(SCALARS) + len(SEEN)
    assert both.losses == {'x': LossCount(10, 1, 0), 'y': LossCount(10, 0, 2)}
    assert [t.source for t in both.loss_samples] == ['c.png']


def test_adding_leaves_the_tallies_of_the_samples_alone() -> None:
    carried = tally('a.png', skipped=3)
    ledger = Ledger()
    for _ in range(2):
        ledger.pending.add(ledger.see([sample('a.png', carried)]))
        ledger.take_pending()
    assert carried == tally('a.png', skipped=3)
    assert ledger.files['a.png'].skipped == 6
    assert ledger.files['a.png'].values == {11: 6}


def test_a_ledger_moves_what_is_pending_into_its_totals() -> None:
    ledger = Ledger(roots=['/data'])
    for _ in range(2):
        ledger.pending.add(ledger.see([sample('/data/a.png', tally('/data/a.png', skipped=3)), sample('/data/b.png')]))
    assert ledger.pixels.total == 0
    span = ledger.take_pending()
    assert span.iterations == 2
    assert not ledger.pending
    assert ledger.take_pending().iterations == 0
    assert (ledger.iterations, ledger.offending_iterations) == (2, 2)
    assert (ledger.pixels.total, ledger.pixels.skipped) == (200, 6)
    assert ledger.sources == {'/data/a.png', '/data/b.png'}
    assert ledger.values() == {11: 6}
    assert ledger.shorten('/data/a.png') == 'a.png'


def test_the_ratio_is_the_largest_of_the_three() -> None:
    ledger = Ledger()
    assert ledger.skipped_ratio() == 0
    ledger.add_everywhere([10, 5, 1, 0, 0, 0, 100, 4, 50])
    assert ledger.skipped_ratio() == pytest.approx(0.25)
    ledger.add_everywhere([0, 0, 0, 0, 40, 0, 0, 0, 50])
    assert ledger.skipped_ratio() == pytest.approx(0.4)


def test_to_json_has_the_documented_fields() -> None:
    span = Span.of([sample('r/a.png', tally('r/a.png', skipped=3)), sample('r/b.png', tally('r/b.png'))])
    span.see_losses({'decode_head.loss_decode.0': LossCount(200, 0, 0)}, [])
    assert span.to_json(lambda source: source[2:]) == {
        'skipped_pixels': 3,
        'remapped_pixels': 0,
        'skipped_instances': 0,
        'remapped_instances': 0,
        'total': 200,
        'samples': [{'source': 'a.png', 'skipped': 3, 'remapped': 0, 'values': {'11': 3}}],
        'losses': {'decode_head.loss_decode.0': {'skipped': 0, 'remapped': 0}},
    }


def test_to_json_bears_paths_that_are_no_strings_or_missing() -> None:
    span = Span(offending=[tally(PurePosixPath('r/a.png'), skipped=1), Tally(4, 1, 0, {7: 1})])  # type: ignore[arg-type]
    record = json.loads(json.dumps(span.to_json(str.upper)))
    assert [sample['source'] for sample in record['samples']] == ['R/A.PNG', None]
