"""Ends of the ranks of a run, and the likely causes of what it skipped."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Dict, List, Sequence, Tuple

from mmguard.facts.run import KILLED, MISSED_ANOTHER, RAISED, UNCLEAR, RankFacts, RunFacts
from mmguard.findings import Finding, LabelFacts, diagnose, select_rules
from mmguard.findings.engine import diagnose_for
from mmguard.findings.rule import RunRule
from mmguard.log import flight_record
from mmguard.log.guard_log import GuardLog
from mmguard.log.statistics import KINDS

#: Exceptions of the other ranks when a rank is gone: mmguard, gloo, NCCL.
_OF_ANOTHER_RANK = re.compile('^AbsentRankError|by peer|remote process exited')


def read_ends(paths: Sequence[Path], world_size: int) -> Tuple[List[RankFacts], List[int], List[str]]:
    """Read the flight records of all ranks.

    Returns:
        tuple: the ranks that ended, first the one that probably ended the others; the ranks without a record, if the
        run had ``world_size`` ranks; and what could not be read.
    """
    ended, recorded, problems = [], set(), []
    for path in paths:
        try:
            flight = flight_record.read_flight(str(path))
        except (OSError, ValueError) as error:
            problems.append(str(error))
            continue
        recorded.add(flight.rank)
        problems += flight.unread.list_messages()
        if flight.reason != flight_record.RUNNING:
            raised = MISSED_ANOTHER if _OF_ANOTHER_RANK.search(flight.error) else RAISED
            ending = {'exception': raised, flight_record.KILLED: KILLED}.get(flight.reason, UNCLEAR)
            place = 'before the first iteration' if flight.iter is None else f'in iteration {flight.iter:,}'
            how = flight.error.partition('\n')[0] or flight.reason or 'left no record of its end'
            words = f'rank {flight.rank} ended {place}, {flight.time}: {how}'
            # A launcher kills the other ranks when one has raised an exception of its own.
            order = {RAISED: 0, KILLED: 1}.get(ending, 2), flight.time, flight.rank, str(path)
            ended.append((order, RankFacts(flight.rank, ending, words, flight.error, flight.iter, str(path))))
    ranks = [rank for _, rank in sorted(ended, key=lambda end: end[0])]
    return ranks, [rank for rank in range(world_size) if ranks and rank not in recorded], problems


def find_rank_causes(log: GuardLog, ranks: Sequence[RankFacts], silent: List[int]) -> List[Finding]:
    """Return the findings about the ranks of a run, the most likely first."""
    run = RunFacts(silent, log.totals('train').filled, log.lines['train'].first_filled)
    rules = [rule for rule in select_rules() if issubclass(rule, RunRule)]
    return diagnose(rules=rules, run=run, ranks=tuple(ranks))


def find_causes(log: GuardLog) -> Dict[str, List[Finding]]:
    """Return mode and kind -> the likely causes of the invalid labels, the most likely first."""
    causes = {}
    for mode in log.modes:
        logged, totals, lines = log.run.modes[mode], log.totals(mode), log.lines[mode]
        for kind in KINDS:
            space, tally = logged.spaces.get(kind), totals.kinds[kind]
            if space is not None and tally:
                facts = LabelFacts.from_tallies(
                    lines.files.find_worst(kind),
                    kind,
                    # The user expects the values that a label_map names.
                    values={value: number for value, number in tally.values.items() if value not in space.label_map},
                    total=tally.total,
                    files=totals.files,
                    reasons=tally.reasons,
                    num_classes=space.num_classes,
                    ignore_index=space.ignore_index,
                    class_names=list(logged.spaces.names),
                )
                causes[f'{mode}, {kind}'] = diagnose_for(log.run.framework, facts, logged.data_roots)
    return causes
