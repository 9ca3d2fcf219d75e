"""Command ``mmguard report``, which prints the skipped labels of a run, how its ranks ended, and likely causes."""

from __future__ import annotations

import argparse
import re
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Sequence, Tuple

from mmguard.commands import CLEAN, COULD_NOT_RUN, FOUND
from mmguard.commands.arguments import VERBOSE, add_arguments

if TYPE_CHECKING:
    from mmguard.facts.run import RankFacts
    from mmguard.findings import Finding
    from mmguard.log.guard_log import GuardLog

_ARGUMENTS = """\
log LOG  label_guard.jsonl, label_guard_flight.jsonl, or a run's folder
--json FILE  write the numbers as JSON (-: to standard output)
"""


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        'report',
        help='show which labels a training skipped, how it ended, and the likely causes',
        description='Shows what LabelGuardHook and FlightRecorderHook wrote during a training, on all ranks: how each '
        'rank ended, the worst files, the skipped labels, and the likely causes. Exit code: 0 no label was skipped, 1 '
        'labels were skipped, or the training crashed, 2 the log could not be read, or the part '
        'that could be read has no skipped labels.',
    )
    add_arguments(parser, _ARGUMENTS + VERBOSE, log=Path)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from mmguard.commands.console import Console, render_finding
    from mmguard.commands.explain.reader import find_config
    from mmguard.commands.outputs import write_json
    from mmguard.findings.messages import unpack
    from mmguard.log.guard_log import GuardLog
    from mmguard.log.run_files import NotALog, find_run

    files = find_run(args.log)
    log = GuardLog(files)
    ranks, silent, unread = read_ends(files.crashes, log.run.world_size)
    problems = log.problems + unread
    if not (log.modes or ranks):
        raise NotALog(
            '; '.join([f'{args.log}: no output of an mmguard hook, so there is nothing to report', *problems])
        )
    causes = {'ranks': find_rank_causes(log, ranks, silent), **find_causes(log)}
    console = Console(stderr=args.json == '-')
    for line in (*(rank.words for rank in ranks), *unread, str(log)):
        console.print(line, soft_wrap=True)
    for place, findings in causes.items():
        for finding in findings[: None if args.verbose or place == 'ranks' else 1]:
            console.print(render_finding(finding, f'\n{place}: ', args.verbose), soft_wrap=True)
    if ranks:
        config = str(find_config(log.folder) or 'CONFIG')
        for words in (['explain', str(log.folder)], ['replay', config, ranks[0].record]):
            console.print(shlex.join(['mmguard', *words]), style='bold cyan', soft_wrap=True)
    if args.json is not None:
        record = dict(
            folder=str(log.folder),
            problems=problems,
            modes={mode: log.totals(mode).to_json() for mode in log.modes},
            files=log.files(),
            findings=[{'of': place, **unpack(finding)} for place, found in causes.items() for finding in found],
            ranks=list(map(asdict, ranks)),
        )
        write_json(args.json, record)
    if ranks or any(map(log.totals, log.modes)):
        return FOUND
    return COULD_NOT_RUN if problems else CLEAN


#: Pattern of the exceptions of mmguard, gloo and NCCL that a rank raises after another rank has ended.
_OF_ANOTHER_RANK = re.compile('^AbsentRankError|by peer|remote process exited')


def read_ends(paths: Sequence[Path], world_size: int) -> Tuple[List[RankFacts], List[int], List[str]]:
    """Read the flight records of all ranks.

    Returns:
        tuple: the ranks that ended (first the rank that probably ended the other ranks), the ranks below
        ``world_size`` without a record, and messages about records that could not be read.
    """
    from mmguard.facts.run import KILLED, MISSED_ANOTHER, RAISED, UNCLEAR, RankFacts
    from mmguard.log import flight_record

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
            how = flight.error.partition('\n')[0] or flight.reason or 'the record does not show how'
            words = f'rank {flight.rank} ended {place}, {flight.time}: {how}'
            # A launcher kills the other ranks when one has raised an exception of its own.
            order = {RAISED: 0, KILLED: 1}.get(ending, 2), flight.time, flight.rank, str(path)
            ended.append((order, RankFacts(flight.rank, ending, words, flight.error, flight.iter, str(path))))
    ranks = [rank for _, rank in sorted(ended, key=lambda end: end[0])]
    return ranks, [rank for rank in range(world_size) if ranks and rank not in recorded], problems


def find_rank_causes(log: GuardLog, ranks: Sequence[RankFacts], silent: List[int]) -> List[Finding]:
    """Return the findings about the ranks of a run, the most likely first."""
    from mmguard.facts.run import RunFacts
    from mmguard.findings import diagnose, select_rules
    from mmguard.findings.rule import RunRule

    run = RunFacts(silent, log.totals('train').filled, log.lines['train'].first_filled)
    rules = [rule for rule in select_rules() if issubclass(rule, RunRule)]
    return diagnose(rules=rules, run=run, ranks=tuple(ranks))


def find_causes(log: GuardLog) -> Dict[str, List[Finding]]:
    """Return the likely causes of invalid labels as {mode and kind: causes}, the most likely first."""
    from mmguard.findings import LabelFacts
    from mmguard.findings.engine import diagnose_for
    from mmguard.log.statistics import KINDS

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
