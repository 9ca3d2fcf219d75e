"""Texts of the log, as they are read: ``tests/snapshots/log.txt``."""

from __future__ import annotations

from typing import Any, Dict

import pytest
from window_stats import make_stats

from mmguard.labels.tally import Tally
from mmguard.log.messages import (
    RateLimiter,
    describe_filled,
    describe_offence,
    describe_skipped_ratio,
    describe_totals,
    describe_unreached,
    format_files,
    format_percent,
    summarize_loop,
)
from mmguard.log.run_log import ModeStats
from mmguard.log.statistics import Stats, group_tallies

LOG = '/log/label_guard.jsonl'
NAME = 'gtFine/train/strasbourg/strasbourg_000000_000019_gtFine_labelTrainIds.png'
REASONS = {'label': 3, 'box_no_area': 2, 'box_outside': 1}


def camvid_span() -> Stats:
    tallies = [Tally(49152, n, 0, {11: n}, f'trainannot/{name}.png') for name, n in (('0001TP_006690', 1201), ('b', 2))]
    return make_stats(
        1, samples=4, offending_samples=3, pixels=Tally(196608, 2503), offending=group_tallies(pixels=tallies)
    )


def instances_span() -> Stats:
    found = group_tallies(instances=[Tally(57, 6, 0, {264: 1, 600: 2}, 'a.jpg', REASONS)])
    return make_stats(1, 1, 2, 1, instances=Tally(57, 6, reasons=REASONS), offending=found, empty_images=1)


def both_changes() -> Stats:
    tallies = [Tally(100, 3, 4, dict.fromkeys(range(20, 28), 1), 'a.png')]
    losses = {'head.loss': Tally(50, 5, 0), 'head.other': Tally(50, 0, 0)}
    return make_stats(
        1, 1, 2, 1, Tally(100, 3, 4), instances=Tally(9, 2), offending=group_tallies(pixels=tallies), losses=losses
    )


def ledger_of(files: int) -> ModeStats:
    found = [Tally(100, n + 1, 0, {11: n + 1}, f'/data/{n}.png') for n in range(files)]
    losses = {'head.loss': Tally(50, 5, 0)}
    span = make_stats(3, 2, pixels=Tally(1000, 10 * files), offending=group_tallies(pixels=found), losses=losses)
    ledger = ModeStats()
    ledger.start(['/data'])
    return closed(ledger, span, *(f'/data/{n}.png' for n in range(10)))


def closed(ledger: ModeStats, span: Stats, *files: str) -> ModeStats:
    ledger.add(span, {'iter': 1}, files)
    return ledger


def several() -> Stats:
    span = camvid_span()
    span += camvid_span()
    span += make_stats(iterations=38, samples=72, pixels=Tally(4_000_000))
    return span


def log_without_clean_iterations() -> Stats:
    kinds = {'pixels': Tally(60, 50, 0, {7: 50}, mapped=5), 'instances': Tally()}
    return Stats(0, 2, 0, 1, kinds, {'l': Tally(0, 5, 1)}, 1, {'loss_mask': {'10': 1, '2': 3}})


VALUES = Tally(60, 50, 0, {n: n for n in range(1, 9)}, 'a\n.png', {'box_no_area': 2}, other_values=14)
CLEAN = make_stats(1, pixels=Tally(1000, mapped=7), instances=Tally(3), samples=1)
BRACKETS = make_stats(
    pixels=Tally(9, 1), offending=group_tallies(pixels=[Tally(9, 1, 0, {5: 1}, 'lot[/red]:car:/a.png')])
)
NO_FILE = make_stats(samples=2, offending_samples=1, offending=group_tallies(pixels=[Tally(9, 1, 0, {5: 1})]))
LOSS_ONLY = make_stats(samples=2, losses={'head.loss': Tally(50, 0, 5)})
WORST = [Tally(source='a.png'), Tally(source='b.png')]
TEXTS: Dict[str, Any] = {
    'iteration with pixels': lambda: describe_offence('guard: iter 37', camvid_span()),
    'several iterations': lambda: describe_offence('guard: iters 11-50', several()),
    'both changes, instances, losses': lambda: describe_offence('guard: iter 1', both_changes()),
    'loss without files': lambda: describe_offence('guard: iter 1', LOSS_ONLY),
    'a sample without a path': lambda: describe_offence('guard: iter 1', NO_FILE),
    'labels and boxes': lambda: describe_offence('guard: iter 3', instances_span()),
    'table': lambda: summarize_loop('train', ledger_of(4), 3, LOG),
    'table without a file': lambda: summarize_loop('train', ledger_of(4), 0, LOG),
    'table of both kinds': lambda: summarize_loop('train', closed(ledger_of(2), instances_span()), 5, LOG),
    'table with brackets in a name': lambda: summarize_loop('val', closed(ModeStats(), BRACKETS), 5, LOG),
    'values of a file': lambda: '\n'.join(format_files('t', [VALUES], 0)),
    'amounts of the offences only': lambda: '\n'.join(describe_totals(log_without_clean_iterations())),
    'amounts of ranks': lambda: '\n'.join(describe_totals(Stats(4, 2, 3, 1), ranks=2)),
    'clean loop': lambda: summarize_loop('val', closed(ModeStats(), CLEAN, 'a.png'), 3, LOG),
    'too many skipped': lambda: describe_skipped_ratio(0.25, 0.1, WORST),
    'filled losses': lambda: describe_filled([(1, ['loss_a'], [f'{number}.jpg' for number in range(1210)])]),
    'file name with control characters': lambda: describe_filled([(1, ['loss_a'], ['\x1b[2J\n\u202ea.jpg'])]),
    'unreached parameter': lambda: describe_unreached(['a.weight']),
}


@pytest.mark.parametrize('case', TEXTS)
def test_text(case: str, snapshot: Any) -> None:
    snapshot('log', case, TEXTS[case]())


def test_several_iterations_are_one_line_before_and_after_condensing() -> None:
    condensed = several()
    condensed.condense()
    assert describe_offence('guard', condensed) == describe_offence('guard', several())


def test_a_loop_without_an_iteration_has_no_text() -> None:
    assert summarize_loop('val', ModeStats(), 3, LOG) == ''


def test_table_breaks_no_file_name_in_two() -> None:
    ledger = ledger_of(1)
    ledger.files.add('pixels', Tally(9, 9, 0, dict.fromkeys(range(24, 30), 10**6), NAME))
    assert NAME in summarize_loop('train', ledger, 3, LOG)


@pytest.mark.parametrize(('part', 'whole', 'text'), [(1, 3, '33.3 %'), (0, 5, '0 %'), (0, 0, '0 %'), (5, 5, '100 %')])
def test_percent(part: int, whole: int, text: str) -> None:
    assert format_percent(part, whole) == text


def test_pace_lets_the_first_pass_then_one_per_period() -> None:
    limiter = RateLimiter(first=2, seconds=1000)
    assert [limiter.allow() for _ in range(5)] == [True, True, False, False, False]
    assert '3' in limiter.describe_held_back()
    assert not limiter.allow()
    assert '1' in limiter.describe_held_back()
    assert limiter.describe_held_back() == ''
    eager = RateLimiter(first=0, seconds=0)
    assert [eager.allow() for _ in range(3)] == [True] * 3
