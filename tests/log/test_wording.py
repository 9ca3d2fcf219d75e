"""Texts of the log, as they are read: ``tests/snapshots/log.txt``."""

from __future__ import annotations

from typing import Any, Dict

import pytest

from mmguard.labels.tally import Tally
from mmguard.log.ledger import Ledger
from mmguard.log.pace import Pace
from mmguard.log.rank_wording import describe_filled, describe_mismatch, describe_nonfinite, describe_unreached
from mmguard.log.span import Span, by_kind
from mmguard.log.totals import LoopTotals, LossCount
from mmguard.log.wording import amounts, closing, closing_table, files_table, offence_line, percent, too_many_skipped

NAME = 'gtFine/train/strasbourg/strasbourg_000000_000019_gtFine_labelTrainIds.png'
REASONS = {'label': 3, 'box_no_area': 2, 'box_outside': 1}


def camvid_span() -> Span:
    tallies = [Tally(49152, n, 0, {11: n}, f'trainannot/{name}.png') for name, n in (('0001TP_006690', 1201), ('b', 2))]
    return Span(1, samples=4, offending_samples=3, pixels=Tally(196608, 2503), offending=by_kind(pixels=tallies))


def instances_span() -> Span:
    found = by_kind(instances=[Tally(57, 6, 0, {264: 1, 600: 2}, 'a.jpg', REASONS)])
    return Span(1, 1, 2, 1, instances=Tally(57, 6, reasons=REASONS), offending=found, empty_images=1)


def both_changes() -> Span:
    tallies = [Tally(100, 3, 4, dict.fromkeys(range(20, 28), 1), 'a.png')]
    losses = {'head.loss': LossCount(50, 5, 0), 'head.other': LossCount(50, 0, 0)}
    return Span(1, 1, 2, 1, Tally(100, 3, 4), instances=Tally(9, 2), offending=by_kind(pixels=tallies), losses=losses)


def ledger_of(files: int) -> Ledger:
    ledger = Ledger(roots=['/data'])
    found = [Tally(100, n + 1, 0, {11: n + 1}, f'/data/{n}.png') for n in range(files)]
    losses = {'head.loss': LossCount(50, 5, 0)}
    ledger.pending = Span(3, 2, pixels=Tally(1000, 10 * files), offending=by_kind(pixels=found), losses=losses)
    ledger.see_files(f'/data/{n}.png' for n in range(10))
    ledger.take_pending()
    return ledger


def closed(ledger: Ledger, span: Span, *files: str) -> Ledger:
    ledger.see_files(files)
    ledger.pending = span
    ledger.take_pending()
    return ledger


def several() -> Span:
    span = camvid_span()
    span.add(camvid_span())
    span.add(Span(iterations=38, samples=72, pixels=Tally(4_000_000)))
    return span


def log_without_clean_iterations() -> LoopTotals:
    kinds = {'pixels': Tally(60, 50, 0, {7: 50}, mapped=5), 'instances': Tally()}
    return LoopTotals(0, 2, 0, 1, kinds, {'l': LossCount(0, 5, 1)}, 1, {'loss_mask': {'10': 1, '2': 3}})


VALUES = Tally(60, 50, 0, {n: n for n in range(1, 9)}, 'a\n.png', {'box_no_area': 2}, other_values=14)
CLEAN = Span(1, pixels=Tally(1000, mapped=7), instances=Tally(3), samples=1)
BRACKETS = Span(pixels=Tally(9, 1), offending=by_kind(pixels=[Tally(9, 1, 0, {5: 1}, 'lot[/red]:car:/a.png')]))
LOSS_ONLY = Span(samples=2, losses={'head.loss': LossCount(50, 0, 5)})
WORST = [Tally(source='a.png'), Tally(source='b.png')]
LACKS = [(0, [], ['a.jpg']), (1, ['loss_a', 'loss_b'], ['b.jpg'])]
NONFINITE = [(1, ['loss_a', 'loss_b'], ['a.jpg', 'b.jpg']), (3, ['loss_a'], [])]

TEXTS: Dict[str, Any] = {
    'iteration with pixels': lambda: offence_line('guard: iter 37', camvid_span()),
    'several iterations': lambda: offence_line('guard: iters 11-50', several()),
    'both changes, instances, losses': lambda: offence_line('guard: iter 1', both_changes()),
    'loss without files': lambda: offence_line('guard: iter 1', LOSS_ONLY),
    'labels and boxes': lambda: offence_line('guard: iter 3', instances_span()),
    'table': lambda: closing_table('train', ledger_of(4), 3, '/log/label_guard.jsonl'),
    'table without a file': lambda: closing_table('train', ledger_of(4), 0, None),
    'table of both kinds': lambda: closing_table('train', closed(ledger_of(2), instances_span()), 5, None),
    'table with brackets in a name': lambda: closing_table('val', closed(Ledger(), BRACKETS), 5, None),
    'values of a file': lambda: '\n'.join(files_table('t', [VALUES], 0)),
    'amounts of the offences only': lambda: '\n'.join(amounts(log_without_clean_iterations())),
    'amounts of ranks': lambda: '\n'.join(amounts(LoopTotals(4, 2, 3, 1), ranks=2)),
    'clean loop': lambda: closing('val', closed(Ledger(), CLEAN, 'a.png'), 3, None),
    'loop with an offence': lambda: closing('val', ledger_of(1), 3, None),
    'too many skipped': lambda: too_many_skipped(0.25, 0.1, WORST),
    'losses that are not finite': lambda: describe_nonfinite(NONFINITE),
    'filled losses': lambda: describe_filled([(1, ['loss_a'], [f'{number}.jpg' for number in range(1210)])]),
    'file name with control characters': lambda: describe_filled([(1, ['loss_a'], ['\x1b[2J\n\u202ea.jpg'])]),
    'ranks differ': lambda: describe_mismatch(LACKS, [{'loss_a', 'loss_b'}, {'loss_b'}]),
    'unreached parameter': lambda: describe_unreached(['a.weight']),
}


@pytest.mark.parametrize('case', TEXTS)
def test_text(case: str, snapshot: Any) -> None:
    snapshot('log', case, TEXTS[case]())


def test_several_iterations_are_one_line_before_and_after_condensing() -> None:
    assert offence_line('guard', several().condensed()) == offence_line('guard', several())


def test_a_loop_without_an_iteration_has_no_text() -> None:
    assert closing('val', Ledger(), 3, None) == ''


def test_table_breaks_no_file_name_in_two() -> None:
    ledger = ledger_of(1)
    ledger.files.add('pixels', Tally(9, 9, 0, dict.fromkeys(range(24, 30), 10**6), NAME))
    assert NAME in closing_table('train', ledger, 3, None)


@pytest.mark.parametrize(('part', 'whole', 'text'), [(1, 3, '33.3 %'), (0, 5, '0 %'), (0, 0, '0 %'), (5, 5, '100 %')])
def test_percent(part: int, whole: int, text: str) -> None:
    assert percent(part, whole) == text


def test_pace_lets_the_first_pass_then_one_per_period() -> None:
    pace = Pace(first=2, seconds=1000)
    assert [pace.lets_pass() for _ in range(5)] == [True, True, False, False, False]
    assert '3' in pace.since_last()
    assert not pace.lets_pass()
    assert '1' in pace.since_last()
    assert pace.since_last() == ''
    eager = Pace(first=0, seconds=0)
    assert [eager.lets_pass() for _ in range(3)] == [True] * 3
