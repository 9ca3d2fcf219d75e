"""Statistics: sums of tallies, over an iteration, a loop and files."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from typing import Any, Dict, List, Optional, Tuple

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mmengine.structures import BaseDataElement, InstanceData
from window_stats import make_stats

from mmguard.labels.tally import LABEL_GUARD, Tally
from mmguard.log.run_log import ModeStats
from mmguard.log.statistics import KINDS, SCALARS, SEEN, PerFileStats, Stats, group_tallies


def sample(path: str, pixels: Optional[Tally] = None, instances: Optional[Tally] = None) -> BaseDataElement:
    record = {kind: vars(tally) for kind, tally in (('pixels', pixels), ('instances', instances)) if tally is not None}
    element = BaseDataElement(metainfo=dict(seg_map_path=path))
    if record:
        element.set_field(record, LABEL_GUARD, field_type='metainfo')
    return element


def tally(source: str, skipped: int = 0, remapped: int = 0, value: int = 11, total: int = 100) -> Tally:
    return Tally(total, skipped, remapped, {value: skipped + remapped} if skipped + remapped else {}, source)


def loop_of(*windows: Stats, roots: Any = (), files: Any = ()) -> ModeStats:
    loop = ModeStats()
    loop.start(roots)
    for number, stats in enumerate(windows, 1):
        loop.add(stats, {'iter': number}, files)
    return loop


def line_of(stats: Stats, *roots: str) -> Dict[str, Any]:
    """The fields of the line of the log, in a loop in which no file offended before."""
    return loop_of(roots=roots).add(stats, {'iter': 1}, ()).to_line()


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


def test_spans_add_up() -> None:
    both = batch()
    later = batch()
    later.add_losses({'x': Tally(10, 1, 0), 'y': Tally(10, 0, 2)})
    later.add_loss_samples(group_tallies(pixels=[tally('c.png', skipped=1)]))
    both += later
    both += make_stats(iterations=1, samples=4)
    assert (both.iterations, both.offending_iterations, both.samples, both.offending_samples) == (3, 2, 12, 4)
    assert both.vector() == [6, 4, 2, 0, 1, 2, 0, 0, 600, 10, 20]
    assert len(both.vector()) == len(SCALARS) + len(SEEN)
    assert both.losses == {'x': Tally(10, 1, 0), 'y': Tally(10, 0, 2)}
    assert [t.source for t in both.loss_samples['pixels']] == ['c.png']


def test_adding_and_writing_change_nothing_that_was_given() -> None:
    carried = tally('a.png', skipped=3)
    window = Stats.from_samples([sample('a.png', carried)])
    loop = ModeStats()
    shown = [loop.add(window, {'iter': number}, ['a.png']) for number in (1, 2)]
    assert ['values' in one.to_line()['samples'][0] for one in shown] == [True, False]
    assert carried == tally('a.png', skipped=3)
    assert window.offending['pixels'] == [carried]
    assert loop.files.find_worst('pixels', 9) == [Tally(200, 6, 0, {11: 6}, 'a.png')]


def test_a_loop_adds_up_its_iterations_and_starts_from_0_again() -> None:
    window = Stats.from_samples([sample('/data/a.png', tally('/data/a.png', skipped=3)), sample('/data/b.png')])
    loop = loop_of(window, window, roots=['/data'], files=['/data/a.png', '/data/b.png'])
    assert (loop.sums.iterations, loop.sums.offending_iterations) == (2, 2)
    assert loop.sums.kinds['pixels'] == Tally(200, 6, 0, {11: 6})
    assert (loop.totals().files, loop.totals().offending_files) == (2, 1)
    assert loop.shorten('/data/a.png') == 'a.png'
    loop.start(['/data'])
    assert loop.sums == Stats()
    loop.add(window, {'iter': 1}, ['/data/c.png'])
    record = loop.to_json()
    assert record['loops'] == {'2': 2, '1': 1}
    assert Stats.from_json(record['totals']) == Stats(
        3, 3, 3, 1, {**Stats().kinds, 'pixels': Tally(300, 9, 0, {11: 9})}
    )
    assert [found.skipped for found in loop.find_worst('pixels', 5)] == [3]


def test_to_json_has_the_documented_fields() -> None:
    span = Stats.from_samples([sample('r/a.png', tally('r/a.png', skipped=3)), sample('r/b.png', tally('r/b.png'))])
    span.add_losses({'decode_head.loss_decode.0': Tally(200, 0, 0)})
    assert line_of(span, 'r') == {
        'skipped_pixels': 3,
        'remapped_pixels': 0,
        'skipped_instances': 0,
        'remapped_instances': 0,
        'total': 200,
        'samples': [{'source': 'a.png', 'skipped': 3, 'remapped': 0, 'values': {'11': 3}}],
        'losses': {'decode_head.loss_decode.0': {'skipped': 0, 'remapped': 0}},
    }


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
    assert span.vector()[SCALARS.index('empty_images')] == 3


def test_files_of_pixels_and_of_instances_are_not_added_up() -> None:
    loop = loop_of(Stats.from_samples([sample('a.png', tally('a.png', skipped=9), tally('a.png', skipped=2))]))
    assert [tally.skipped for kind in KINDS for tally in loop.find_worst(kind, 5)] == [9, 2]
    assert loop.files.offending == 1


FOUND = st.lists(
    st.tuples(
        st.sampled_from(['a', 'b', '/a', 'x/a', 'x/b', 'x//a', '/x/a', 'y/']),
        st.sampled_from(['pixels', 'instances']),
        st.integers(0, 9),
        st.integers(0, 9),
    ),
    max_size=40,
)


@given(FOUND, st.integers(1, 9))
@settings(derandomize=True, deadline=None)
def test_counts_and_order_are_those_of_a_plain_sum(found: List[Tuple[str, str, int, int]], number: int) -> None:
    files = PerFileStats()
    files.see(['clean'])
    sums: Dict[str, Counter] = {'pixels': Counter(), 'instances': Counter()}
    for name, kind, skipped, remapped in found:
        if skipped + remapped:
            files.add(kind, Tally(99, skipped, remapped, {7: skipped + remapped}, name))
            sums[kind][name] += skipped + remapped
    for kind, count in sums.items():
        ranked = sorted(count.items(), key=lambda item: (-item[1], item[0]))
        worst = files.find_worst(kind, number)
        assert [(tally.source, tally.skipped + tally.remapped) for tally in worst] == ranked[:number]
        assert all(tally.values == {7: tally.skipped + tally.remapped} for tally in worst)
        assert files.count_files(kind) == len(count)
    assert files.offending == len(sums['pixels'].keys() | sums['instances'].keys())
    assert len(files) == files.offending + 1


def test_the_values_of_files_far_from_the_worst_are_forgotten_first() -> None:
    files = PerFileStats(detailed=5)
    for number in range(100):
        files.add('pixels', Tally(9, number + 1, 0, {11: number + 1}, f'{number:03}'))
    files.add('pixels', Tally(9, 1000, 0, {12: 1000}, '000'))
    first, *others = files.find_worst('pixels', 100)
    assert first == Tally(9, 1001, 0, {12: 1000}, '000', other_values=1)
    assert [tally.source for tally in others] == [f'{number:03}' for number in range(99, 0, -1)]
    assert all(tally.values == {11: tally.skipped} for tally in others[:4])
    assert all(sum(tally.values.values()) + tally.other_values == tally.skipped for tally in others)


def test_a_file_that_offends_again_in_the_same_way() -> None:
    files = PerFileStats()
    asked = [
        ({11: 3}, {}, False),
        ({11: 3}, {}, True),
        ({11: 9}, {}, True),  # one value: the sums give its count
        ({12: 9}, {}, False),
        ({11: 1, 12: 2}, {}, False),
        ({11: 1, 12: 2}, {}, True),
        ({11: 2, 12: 2}, {}, False),
        ({11: 2}, {'label': 2}, False),
        ({11: 2}, {'label': 2}, True),
        ({11: 2}, {'label': 2, 'box_no_area': 1}, False),
        ({11: 2}, {'label': 2, 'box_no_area': 1}, False),
    ]
    for values, reasons, expected in asked:
        tally = Tally(99, sum(values.values()), values=values, source='a.png', reasons=reasons)
        assert files.add('pixels', tally) is expected, values
    assert not files.add('pixels', Tally(9, 3, 0, {11: 3}, 'b.png'))
    assert not files.add('instances', Tally(9, 3, 0, {11: 3}, 'b.png'))


def test_ten_thousand_offending_files_take_less_than_4_mb() -> None:
    tracemalloc.start()
    try:
        files = PerFileStats()
        for number in range(10_000):
            name = f'gtFine/train/aachen/aachen_{number:06d}_000019_gtFine_labelTrainIds.png'
            files.add('pixels', Tally(9, 2, 0, {11: 1, number: 1}, name))
        assert tracemalloc.get_traced_memory()[1] < 4e6
    finally:
        tracemalloc.stop()
    assert (files.count_files('pixels'), len(files.find_worst('pixels', 20))) == (10_000, 20)


def test_files_of_a_later_loop_count_once() -> None:
    files = PerFileStats()
    files.see(['clean'])
    files.add('pixels', Tally(9, 1, 0, {7: 1}, 'a'))
    files.start_loop()
    files.add('pixels', Tally(9, 1, 0, {7: 1}, 'clean'))
    files.see(['new'])
    assert (len(files), files.offending, files.count_files('pixels')) == (3, 2, 1)
    files.add('pixels', Tally(9, 1, 0, {7: 1}, 'a'))
    assert (len(files), files.offending, files.count_files('pixels')) == (3, 2, 2)
