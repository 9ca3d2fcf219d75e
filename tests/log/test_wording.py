from __future__ import annotations

import pytest

from mmguard.labels.tally import Tally
from mmguard.log.ledger import Ledger
from mmguard.log.pace import Pace
from mmguard.log.span import Span, by_kind
from mmguard.log.totals import LoopTotals, LossCount
from mmguard.log.wording import amounts, closing, closing_table, files_table, offence_line, percent, too_many_skipped


def camvid_span() -> Span:
    return Span(
        iterations=1,
        samples=4,
        offending_samples=3,
        pixels=Tally(196608, 2503, 0),
        offending=by_kind(
            pixels=[
                Tally(49152, n, 0, {11: n}, f'trainannot/{name}.png') for name, n in (('0001TP_006690', 1201), ('b', 2))
            ]
        ),
    )


def test_line_is_the_one_of_the_design() -> None:
    assert offence_line('guard: iter 37', camvid_span()) == (
        'guard: iter 37: 2,503 of 196,608 px skipped (value 11) in 3 of 4 images, first: trainannot/0001TP_006690.png'
    )


def test_line_about_several_iterations_names_the_worst_file() -> None:
    several = camvid_span()
    several.add(camvid_span())
    several.add(Span(iterations=38, samples=72, pixels=Tally(4_000_000)))
    expected = 'guard: iters 11-50: 5,006 px skipped (0.114 %, value 11) in 6 of 80 images, worst: '
    for span in (several, several.condensed()):
        assert offence_line('guard: iters 11-50', span) == f'{expected}trainannot/0001TP_006690.png'


def test_line_names_instances_losses_and_both_changes() -> None:
    span = Span(
        samples=2,
        offending_samples=1,
        pixels=Tally(100, 3, 4),
        instances=Tally(9, 2, 0),
        offending=by_kind(pixels=[Tally(100, 3, 4, dict.fromkeys(range(20, 28), 1), 'a.png')]),
        losses={'head.loss': LossCount(50, 5, 0), 'head.other': LossCount(50, 0, 0)},
    )
    assert offence_line('guard: iter 1', span) == (
        'guard: iter 1: 3 of 100 px skipped, 4 of 100 px remapped (values 20, 21, 22, 23, 24, 25, ...); '
        '2 of 9 instances skipped; 5 of 50 labels skipped by the loss head.loss in 1 of 2 images, first: a.png'
    )


def test_line_of_a_loss_whose_files_are_unknown_ends_early() -> None:
    span = Span(samples=2, losses={'head.loss': LossCount(50, 0, 5)})
    assert offence_line('guard: iter 1', span) == ('guard: iter 1: 5 of 50 labels remapped by the loss head.loss')


def ledger_of(files: int) -> Ledger:
    ledger = Ledger(roots=['/data'])
    ledger.pending = Span(
        iterations=3,
        offending_iterations=2,
        pixels=Tally(1000, 10 * files, 0),
        offending=by_kind(pixels=[Tally(100, n + 1, 0, {11: n + 1}, f'/data/{n}.png') for n in range(files)]),
        losses={'head.loss': LossCount(50, 5, 0)},
    )
    ledger.see_files(f'/data/{n}.png' for n in range(10))
    ledger.take_pending()
    return ledger


def test_table_ranks_the_worst_files_first() -> None:
    table = closing_table('train', ledger_of(4), 3, '/log/label_guard.jsonl')
    assert [' '.join(line.split()) for line in table.splitlines()] == [
        'mmguard: train, pixels',
        'skipped remapped file (values)',
        '4 0 3.png (11: 4)',
        '3 0 2.png (11: 3)',
        '2 0 1.png (11: 2)',
        '... and 1 more file',
        'px: 40 of 1,000 skipped (4 %), 0 remapped',
        'loss head.loss: 5 of 50 labels skipped, 0 remapped',
        '4 of 10 files, 2 of 3 iterations',
        'pixels: value 11 (10 times)',
        'every iteration: /log/label_guard.jsonl',
    ]
    assert '... and 4 more files' in ' '.join(closing_table('train', ledger_of(4), 0, None).split())


def test_the_values_of_a_file_are_ranked() -> None:
    found = Tally(60, 50, 0, {n: n for n in range(1, 9)}, 'a\n.png', {'box_no_area': 2}, other_values=14)
    *_, row = files_table('t', [found], 0)
    values = '8: 8, 7: 7, 6: 6, 5: 5, 4: 4, 3: 3, others: 17, 2 boxes without area'
    assert row.split(maxsplit=2) == ['50', '0', f'a\\n.png ({values})']


def test_the_sums_of_a_log_without_its_clean_iterations() -> None:
    found = Tally(60, 50, 0, {7: 50}, mapped=5)
    filled = {'loss_mask': {'10': 1, '2': 3}}
    totals = LoopTotals(0, 2, 0, 1, {'pixels': found, 'instances': Tally()}, {'l': LossCount(0, 5, 1)}, 1, filled)
    assert amounts(totals) == [
        'px: 50 of 60 skipped (83.3 %) in the iterations with any, 0 remapped, 5 mapped by label_map',
        'loss l: 5 labels skipped, 1 remapped',
        '1 image seen without any instance',
        'rank 2 had no loss_mask in 3 iterations; filled with zeros',
        'rank 10 had no loss_mask in 1 iteration; filled with zeros',
        '1 file, in the 2 iterations that the log holds (those with any)',
    ]
    assert amounts(LoopTotals(4, 2, 3, 1), ranks=2) == ['1 of 3 files, 2 of 4 iterations of 2 ranks']


def test_a_loop_without_an_offence_is_one_line() -> None:
    ledger = Ledger()
    ledger.pending = Span(1, pixels=Tally(1000, mapped=7), instances=Tally(3))
    ledger.see_files(['a.png'])
    ledger.take_pending()
    assert closing('val', ledger, 3, None) == 'val: all labels valid (1,000 px, 7 px mapped by label_map in 1 file)'
    assert closing('val', Ledger(), 3, None) == ''
    assert closing('val', ledger_of(1), 3, None).startswith('summary\nmmguard: val, pixels')
    assert too_many_skipped(0.25, 0.1, [Tally(source='a.png'), Tally(source='b.png')]) == (
        '25 % of the labels seen so far were skipped, more than max_skipped_ratio=0.1: a.png, b.png. Correct the '
        'labels, or raise the limit'
    )


def test_table_breaks_no_file_name_in_two() -> None:
    ledger = ledger_of(1)
    name = 'gtFine/train/strasbourg/strasbourg_000000_000019_gtFine_labelTrainIds.png'
    ledger.files.add('pixels', Tally(9, 9, 0, dict.fromkeys(range(24, 30), 10**6), name))
    assert name in closing_table('train', ledger, 3, None)


def test_table_without_a_file_and_with_brackets_in_a_name() -> None:
    ledger = Ledger()
    offending = by_kind(pixels=[Tally(9, 1, 0, {5: 1}, 'lot[/red]:car:/a.png')])
    ledger.pending = Span(pixels=Tally(9, 1, 0), offending=offending)
    ledger.take_pending()
    table = closing_table('val', ledger, 5, None)
    assert 'mmguard: val' in table
    assert 'lot[/red]:car:/a.png' in table
    assert 'every iteration' not in table


@pytest.mark.parametrize(('part', 'whole', 'text'), [(1, 3, '33.3 %'), (0, 5, '0 %'), (0, 0, '0 %'), (5, 5, '100 %')])
def test_percent(part: int, whole: int, text: str) -> None:
    assert percent(part, whole) == text


def test_pace_lets_the_first_pass_then_one_per_period() -> None:
    pace = Pace(first=2, seconds=1000)
    assert [pace.lets_pass() for _ in range(5)] == [True, True, False, False, False]
    assert pace.since_last() == ' (and 3 such iterations since the last line)'
    assert not pace.lets_pass()
    assert pace.since_last() == ' (and 1 such iteration since the last line)'
    assert pace.since_last() == ''
    eager = Pace(first=0, seconds=0)
    assert [eager.lets_pass() for _ in range(3)] == [True] * 3


def instances_span() -> Span:
    reasons = {'label': 3, 'box_no_area': 2, 'box_outside': 1}
    return Span(
        iterations=1,
        offending_iterations=1,
        samples=2,
        offending_samples=1,
        instances=Tally(57, 6, 0, reasons=reasons),
        offending=by_kind(instances=[Tally(57, 6, 0, {264: 1, 600: 2}, 'a.jpg', reasons)]),
        empty_images=1,
    )


def test_line_of_instances_tells_labels_and_boxes() -> None:
    assert offence_line('guard: iter 3', instances_span()) == (
        'guard: iter 3: 6 of 57 instances skipped (values 264, 600; 2 boxes without area; 1 box outside the image) '
        'in 1 of 2 images, 1 left without an instance, first: a.jpg'
    )


def test_table_of_instances_stands_apart_from_that_of_pixels() -> None:
    ledger = ledger_of(2)
    ledger.pending = instances_span()
    ledger.take_pending()
    table = closing_table('train', ledger, 5, None)
    assert 'mmguard: train, pixels' in table
    assert 'mmguard: train, instances' in table
    assert 'instances: 6 of 57 skipped (10.5 %), 0 remapped' in table
    assert 'instances: values 600 (2 times), 264 (1 time), 2 boxes without area, 1 box outside the image' in table
    assert '1 image seen without any instance' in table
