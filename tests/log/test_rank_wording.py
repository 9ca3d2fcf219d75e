"""What is said of ranks that differ."""

from __future__ import annotations

from mmguard.log.rank_wording import describe_filled, describe_mismatch, describe_nonfinite, describe_unreached

MANY = [f'{number}.jpg' for number in range(1210)]


def test_samples_are_named_as_far_as_anyone_reads() -> None:
    assert describe_nonfinite([(1, ['loss_a', 'loss_b'], ['a.jpg', 'b.jpg']), (3, ['loss_a'], [])]) == (
        'rank 1: loss_a, loss_b (samples: a.jpg, b.jpg); rank 3: loss_a (samples: unknown)'
    )
    said = describe_filled([(1, ['loss_a'], MANY)])
    assert said.startswith('rank 1 had no loss_a (samples: 0.jpg, 1.jpg, 2.jpg, 3.jpg, 4.jpg, 5.jpg, 6.jpg, 7.jpg, and')
    assert 'and 1,202 more); filled with zeros' in said


def test_a_rank_that_has_all_is_not_named() -> None:
    lacks = [(0, [], ['a.jpg']), (1, ['loss_a', 'loss_b'], ['b.jpg'])]
    assert describe_mismatch(lacks, [{'loss_a', 'loss_b'}, {'loss_b'}]).startswith(
        'ranks differ in their losses: rank 1 lacks loss_a; has no gradient for loss_b (samples: b.jpg). A head'
    )


def test_one_parameter_is_one_parameter() -> None:
    assert describe_unreached(['a.weight']).startswith('no loss of any rank reaches 1 parameter: a.weight. With')


def test_a_file_name_stays_on_its_line() -> None:
    said = describe_filled([(1, ['loss_a'], ['\x1b[2J\n\u202ea.jpg'])])
    assert said.startswith('rank 1 had no loss_a (samples: \\x1b[2J\\n\\u202ea.jpg)')
