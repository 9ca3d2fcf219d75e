"""A replay on the screen: which sample fails and why, then all of them."""

from __future__ import annotations

from typing import Any, Dict, List, Set

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mmguard.diagnosis import Finding
from mmguard.failures import REPORT_IT
from mmguard.replay.outcome import DIES, INVALID, LEFT_OUT, NOT_FINITE, NOT_FOUND, OUR_FAILURE, PASSES, Outcome
from mmguard.report.html import visible
from mmguard.words import counted

_STYLES = {
    DIES: 'bold red',
    NOT_FINITE: 'bold red',
    INVALID: 'bold red',
    PASSES: 'green',
    LEFT_OUT: 'dim',
    OUR_FAILURE: 'bold red',
    NOT_FOUND: 'yellow',
}
_MOST_TOLD = 5
_MOST_ROWS = 60


def show(console: Console, report: Dict[str, Any]) -> None:
    """Prints the report of ``mmguard.replay.run``."""
    ended = report['exception'] or report['reason']
    place = f'iteration {report["iter"]}' if report['iter'] is not None else 'its start'
    console.print(
        Text(f'{visible(report["file"])}: training got to {place} (rank {report["rank"]}): {visible(str(ended))}'),
        soft_wrap=True,
    )
    for note in report['notes']:
        console.print(Text(f'note: {note}', style='dim'), soft_wrap=True)
    told: Set[Any] = set()
    for outcome in report['failing'][:_MOST_TOLD]:
        _tell(console, outcome, told)
    if len(report['failing']) > _MOST_TOLD:
        console.print(Text(f'... and {len(report["failing"]) - _MOST_TOLD} more that fail, see the table'))
    console.print(_table(report['outcomes']))
    for outcome in report['outcomes']:
        if not outcome.fails:
            for note in outcome.notes:
                name = '' if outcome.status == NOT_FOUND else f'{visible(outcome.recorded.source)}: '
                console.print(Text(f'{name}{visible(note)}', style='yellow'), soft_wrap=True)
    _verdict(console, report)


def _tell(console: Console, outcome: Outcome, told: Set[Any]) -> None:
    text = Text('\n')
    text.append(f'{outcome.status}: ', style='bold red')
    text.append(visible(outcome.path), style='bold')
    recorded = outcome.recorded
    if recorded.iteration is not None:
        text.append(f' (iteration {recorded.iteration}{", which did not end" if recorded.unfinished else ""})')
    for kind, judged in outcome.invalid.items():
        text.append(f'\n  {"labels" if kind == "pixels" else kind}: {visible(str(judged))}')
    for kind, stored in outcome.stored.items():
        trained = outcome.trained.get(kind)
        if stored.is_invalid and (trained is None or stored.tally.values != trained.tally.values):
            text.append(f'\n  as stored: {visible(str(stored))}')
    error = outcome.raised
    if error is not None:
        text.append(f'\n  {outcome.stage}: {visible(str(error))}')
        if error.place:
            text.append(f'\n  at {visible(error.place)}: {visible(error.line)}')
        if error.type == 'IndexError' and outcome.stage == 'forward':
            text.append('\n  On a GPU this is "CUDA error: device-side assert triggered", at some later line.')
    if outcome.nonfinite_losses:
        shown = ', '.join(f'{name} = {outcome.losses[name]}' for name in outcome.nonfinite_losses)
        text.append(f'\n  losses that are not finite: {shown}')
    if outcome.nonfinite_gradients:
        names = outcome.nonfinite_gradients
        text.append(f'\n  gradients that are not finite: {len(names)}, nearest to the loss {", ".join(names[:3])}')
    for line in [*outcome.notes, *outcome.warnings[:3]]:
        text.append(f'\n  {visible(line)}', style='dim')
    console.print(text, soft_wrap=True)
    for finding in outcome.findings:
        if (finding.code, finding.advice) not in told:
            told.add((finding.code, finding.advice))
            console.print(_finding(finding), soft_wrap=True)


def _finding(finding: Finding) -> Text:
    text = Text('  ')
    text.append(f'likely cause {finding.code}: ', style='bold yellow')
    text.append(visible(finding.cause), style='bold')
    text.append('\n  what to do: ')
    # The lines to write stand in backticks; on the screen they stand out by colour.
    for number, part in enumerate(finding.advice.split('`')):
        text.append(part, style='bold cyan' if number % 2 else '')
    return text


def _table(outcomes: List[Outcome]) -> Table:
    table = Table(title='\nreplayed samples, newest batch first', title_justify='left', show_edge=False, pad_edge=False)
    table.add_column('iter', justify='right')
    table.add_column('sample', overflow='fold')
    table.add_column('outcome', no_wrap=True)
    table.add_column('labels', overflow='fold')
    table.add_column('loss', justify='right', no_wrap=True)
    # What fails is never among those left out.
    shown = outcomes if len(outcomes) <= _MOST_ROWS else sorted(outcomes, key=lambda o: not o.fails)[:_MOST_ROWS]
    for outcome in shown:
        iteration = outcome.recorded.iteration
        table.add_row(
            '' if iteration is None else str(iteration),
            Text(visible(outcome.recorded.source)),
            Text(outcome.status, style=_STYLES[outcome.status]),
            Text(_labels(outcome)),
            f'{outcome.losses["loss"]:.4g}' if 'loss' in outcome.losses else '',
        )
    if len(outcomes) > len(shown):
        table.caption = f'and {len(outcomes) - len(shown)} more that do not fail'
    return table


def _labels(outcome: Outcome) -> str:
    from mmguard.instances import describe_reasons

    if not outcome.trained and not outcome.loaded:
        return ''
    return '; '.join(describe_reasons(judged.tally) for judged in outcome.invalid.values()) or 'valid'


def _verdict(console: Console, report: Dict[str, Any]) -> None:
    failing, outcomes, ours = report['failing'], report['outcomes'], report['our_failures']
    lost = len(report['not_found'])
    run = len(outcomes) - lost
    if failing:
        console.print(Text(f'\n{len(failing)} of {run} replayed samples fail.', style='bold red'))
        if report['same_for_all']:
            console.print(
                Text(
                    f'All of them, by {visible(report["same_for_all"])}, and no label explains it: look at the config '
                    f'and the model rather than at a sample (mmguard check CONFIG).'
                ),
                soft_wrap=True,
            )
    elif not ours:
        console.print(Text(f'\nNone of {run} replayed samples fails.', style='bold green'))
        console.print(Text(_nothing_found(report)), soft_wrap=True)
    if ours:
        errors = dict.fromkeys(f'{o.raised} at {o.raised.place}' for o in ours if o.raised is not None)
        console.print(
            Text(
                f'\nmmguard itself failed on {len(ours)} of {run} samples: {visible("; ".join(errors))}. This is '
                f'neither your config nor your data: {REPORT_IT}.',
                style='bold red',
            ),
            soft_wrap=True,
        )
    if lost:
        console.print(
            Text(f'{counted(lost, "sample was", "samples were")} not found here, and may be the ones.', style='yellow')
        )
    if report['older_batches']:
        console.print(
            Text(f'{report["older_batches"]} older batches were left alone; --last N takes N batches.', style='dim')
        )


def _nothing_found(report: Dict[str, Any]) -> str:
    did = 'Their labels are valid' + (', and so are losses and gradients on the CPU' if report['forward'] else '')
    return (
        f'{did}: what ended the training is not in one of these samples alone. That leaves random crops that these '
        f'seeds did not draw (--seeds 20), weights that had gone astray (--weights CHECKPOINT), half precision, '
        f'memory, several ranks (docs/ranks.md), or the hardware.'
        + ('' if report['forward'] else ' The model was not run: leave --no-forward out.')
    )
