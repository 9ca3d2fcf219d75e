from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any, Dict, Optional

import pytest
import torch
from mmengine.structures import BaseDataElement, InstanceData
from window_stats import make_stats

from mmguard.labels.tally import LABEL_GUARD, Tally
from mmguard.log.loop_stats import LoopStats
from mmguard.log.statistics import KINDS, SCALARS, SEEN, Stats, group_tallies


def sample(path: str, pixels: Optional[Tally] = None, instances: Optional[Tally] = None) -> BaseDataElement:
    record = {kind: vars(tally) for kind, tally in (('pixels', pixels), ('instances', instances)) if tally is not None}
    element = BaseDataElement(metainfo=dict(seg_map_path=path))
    if record:
        element.set_field(record, LABEL_GUARD, field_type='metainfo')
    return element


def tally(source: str, skipped: int = 0, remapped: int = 0, value: int = 11, total: int = 100) -> Tally:
    return Tally(total, skipped, remapped, {value: skipped + remapped} if skipped + remapped else {}, source)


def line_of(stats: Stats, *roots: str) -> Dict[str, Any]:
    """The fields of the line of the log, in a loop in which no file offended before."""
    return LoopStats(list(roots), pending=stats).report()[1]


def batch() -> Stats:
    return Stats.from_samples(
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
    assert (span.kinds['pixels'].total, span.kinds['pixels'].skipped, span.kinds['pixels'].remapped) == (300, 3, 2)
    assert (span.kinds['instances'].total, span.kinds['instances'].skipped, span.kinds['instances'].remapped) == (
        5,
        1,
        0,
    )
    assert [t.source for t in span.offending['pixels']] == ['a.png', 'd.png']
    assert [t.source for t in span.offending['instances']] == ['d.png']


def test_a_clean_span_is_false_and_no_offending_iteration() -> None:
    span = Stats.from_samples([sample('b.png', tally('b.png')), sample('c.png')])
    assert not span
    assert span.offending_iterations == span.offending_samples == 0
    span.add_losses({'loss': Tally(total=10)}, group_tallies())
    assert not span
    span.add_losses({'loss': Tally(total=10, remapped=1)}, group_tallies())
    assert span
    assert span.offending_iterations == 1


def test_spans_add_up() -> None:
    both = batch()
    later = batch()
    later.add_losses({'x': Tally(10, 1, 0), 'y': Tally(10, 0, 2)}, group_tallies(pixels=[tally('c.png', skipped=1)]))
    both += later
    both += make_stats(iterations=1, samples=4)
    assert (both.iterations, both.offending_iterations, both.samples, both.offending_samples) == (3, 2, 12, 4)
    assert both.totals().vector() == [6, 4, 2, 0, 1, 2, 0, 0, 600, 10, 20]
    assert len(both.totals().vector()) == len(SCALARS) + len(SEEN)
    assert both.losses == {'x': Tally(10, 1, 0), 'y': Tally(10, 0, 2)}
    assert [t.source for t in both.loss_samples['pixels']] == ['c.png']


def test_adding_leaves_the_tallies_of_the_samples_alone() -> None:
    carried = tally('a.png', skipped=3)
    ledger = LoopStats()
    for _ in range(2):
        ledger.add(ledger.see([sample('a.png', carried)]))
        ledger.report()
    assert carried == tally('a.png', skipped=3)
    assert ledger.files.worst('pixels', 9) == [Tally(200, 6, 0, {11: 6}, 'a.png')]


def test_a_ledger_moves_what_is_pending_into_its_totals() -> None:
    ledger = LoopStats(roots=['/data'])
    for _ in range(2):
        ledger.add(ledger.see([sample('/data/a.png', tally('/data/a.png', skipped=3)), sample('/data/b.png')]))
    assert ledger.sums.kinds['pixels'].total == 0
    span, _ = ledger.report()
    assert span.iterations == 2
    assert not ledger.pending
    assert ledger.report()[0].iterations == 0
    assert (ledger.sums.iterations, ledger.sums.offending_iterations) == (2, 2)
    assert ledger.sums.kinds['pixels'] == Tally(200, 6, 0, {11: 6})
    assert (len(ledger.files), ledger.files.offending) == (2, 1)
    assert ledger.shorten('/data/a.png') == 'a.png'


def test_the_ratio_is_the_largest_of_the_three() -> None:
    ledger = LoopStats()
    assert ledger.skipped_ratio == 0
    ledger.add_everywhere([10, 5, 1, 0, 0, 0, 99, 9, 100, 4, 50])
    assert ledger.skipped_ratio == pytest.approx(0.25)
    ledger.add_everywhere([0, 0, 0, 0, 40, 0, 99, 9, 0, 0, 50])
    assert ledger.skipped_ratio == pytest.approx(0.4)
    ledger.add_everywhere([1, 2])  # of a checkpoint that another version wrote
    assert ledger.skipped_ratio == pytest.approx(0.4)


def test_to_json_has_the_documented_fields() -> None:
    span = Stats.from_samples([sample('r/a.png', tally('r/a.png', skipped=3)), sample('r/b.png', tally('r/b.png'))])
    span.add_losses({'decode_head.loss_decode.0': Tally(200, 0, 0)}, group_tallies())
    assert line_of(span, 'r') == {
        'skipped_pixels': 3,
        'remapped_pixels': 0,
        'skipped_instances': 0,
        'remapped_instances': 0,
        'total': 200,
        'samples': [{'source': 'a.png', 'skipped': 3, 'remapped': 0, 'values': {'11': 3}}],
        'losses': {'decode_head.loss_decode.0': {'skipped': 0, 'remapped': 0}},
    }


def test_to_json_bears_paths_that_are_no_strings_or_missing() -> None:
    tallies = [tally(PurePosixPath('r/a.png'), skipped=1), Tally(4, 1, 0, {7: 1})]  # type: ignore[arg-type]
    span = make_stats(pixels=Tally(104, 2), offending=group_tallies(pixels=tallies))
    record = json.loads(json.dumps(line_of(span, 'r')))
    assert [sample['source'] for sample in record['samples']] == ['a.png', None]


def instances_sample(path: str, left: int, *tallies: Tally) -> BaseDataElement:
    element = sample(path, *([None, *tallies]))
    element.gt_instances = InstanceData(labels=torch.zeros(left))
    return element


def test_instances_are_reported_by_reason_and_images_left_empty_are_counted() -> None:
    unannotated = sample('test.jpg')
    unannotated.gt_instances = InstanceData()
    span = Stats.from_samples(
        [
            instances_sample('a.jpg', 2, Tally(5, 3, 0, {80: 2}, 'a.jpg', {'label': 2, 'box_no_area': 1})),
            instances_sample('b.jpg', 0, Tally(1, 1, 0, {81: 1}, 'b.jpg', {'label': 1})),
            instances_sample('c.jpg', 0, Tally(0, source='c.jpg')),
            sample('no boxes in this data set'),
            unannotated,
        ]
    )
    assert span.empty_images == 2
    assert span.kinds['instances'] == Tally(6, 4, 0, reasons={'label': 3, 'box_no_area': 1})
    span += make_stats(empty_images=1)
    record = line_of(span)
    assert record['total_instances'] == 6
    assert record['reasons'] == {'label': 3, 'box_no_area': 1}
    assert record['empty_images'] == 3
    assert record['samples'] == [
        {
            'source': 'a.jpg',
            'skipped': 3,
            'remapped': 0,
            'values': {'80': 2},
            'reasons': {'box_no_area': 1, 'label': 2},
            'kind': 'instances',
        },
        {
            'source': 'b.jpg',
            'skipped': 1,
            'remapped': 0,
            'values': {'81': 1},
            'reasons': {'label': 1},
            'kind': 'instances',
        },
    ]
    assert span.totals().vector()[SCALARS.index('empty_images')] == 3


def test_files_of_pixels_and_of_instances_are_not_added_up() -> None:
    ledger = LoopStats()
    ledger.pending = Stats.from_samples([sample('a.png', tally('a.png', skipped=9), tally('a.png', skipped=2))])
    ledger.report()
    assert [tally.skipped for kind in KINDS for tally in ledger.worst(kind, 5)] == [9, 2]
    assert ledger.files.offending == 1


def test_what_a_label_map_did_is_summed_and_is_no_offence() -> None:
    span = Stats.from_samples([sample('a.png', Tally(100, mapped=40, source='a.png'))])
    assert not span
    assert span.offending_iterations == span.offending_samples == 0
    assert span.totals().vector()[SCALARS.index('mapped_pixels')] == 40
    ledger = LoopStats(pending=span)
    ledger.report()
    totals = ledger.totals()
    assert not totals
    assert (totals.kinds['pixels'].mapped, totals.offending_files) == (40, 0)
    ledger.add_everywhere(span.totals().vector())
    assert ledger.skipped_ratio == 0
