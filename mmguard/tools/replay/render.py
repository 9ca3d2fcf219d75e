"""Output of ``mmguard replay``: the failing sample and the reason, then all samples."""

from __future__ import annotations

from typing import Any, Dict, List, Set

from mmguard.labels.instances import describe_reasons
from mmguard.text import REPORT_ADVICE, quantity, visible_name
from mmguard.tools.console import Console, Text, render_finding
from mmguard.tools.replay.outcome import DIES, INVALID, LEFT_OUT, NOT_FINITE, NOT_FOUND, OUR_FAILURE, PASSES, Outcome

_STYLES = {
    DIES: 'bold red',
    NOT_FINITE: 'bold red',
    INVALID: 'bold red',
    PASSES: 'green',
    LEFT_OUT: 'dim',
    OUR_FAILURE: 'bold red',
    NOT_FOUND: 'yellow',
}
_MOST_SHOWN = 5
_MOST_ROWS = 60


def show(console: Console, report: Dict[str, Any], verbose: bool = False) -> None:
    """Print the result of :func:`mmguard.tools.replay.run.replay`; ``verbose``: with all edits and notes."""
    ended = visible_name(str(report['exception'] or report['reason']))
    place = f'iteration {report["iter"]}' if report['iter'] is not None else 'its start'
    _print_line(console, f'{visible_name(report["file"])}: training got to {place} (rank {report["rank"]}): {ended}')
    for note in report['notes']:
        _print_line(console, f'note: {note}', 'dim')
    printed: Set[Any] = set()
    for outcome in report['failing'][:_MOST_SHOWN]:
        _print(console, outcome, printed, verbose)
    if len(report['failing']) > _MOST_SHOWN:
        _print_line(console, f'... and {len(report["failing"]) - _MOST_SHOWN} more that fail, see below')
    _print_samples(console, report['outcomes'])
    for outcome in report['outcomes']:
        name = '' if outcome.status == NOT_FOUND else f'{visible_name(outcome.recorded.source)}: '
        for note in () if outcome.fails else outcome.notes:
            _print_line(console, f'{name}{note}', 'yellow')
    _print_verdict(console, report)


def _print_line(console: Console, line: str, style: str = '') -> None:
    console.print(Text(line, style=style), soft_wrap=True)


def _print(console: Console, outcome: Outcome, printed: Set[Any], verbose: bool) -> None:
    text = Text('\n')
    text.append(f'{outcome.status}: ', style='bold red')
    text.append(visible_name(outcome.path), style='bold')
    recorded = outcome.recorded
    if recorded.iteration is not None:
        text.append(f' (iteration {recorded.iteration}{", which did not end" if recorded.unfinished else ""})')
    for kind, judged in outcome.invalid.items():
        text.append(f'\n  {"labels" if kind == "pixels" else kind}: {judged}')
    error = outcome.raised
    if error is not None:
        text.append(f'\n  {outcome.stage}: {error}')
        if error.place:
            text.append(f'\n  at {error.place}: {error.line}')
        if error.type == 'IndexError' and outcome.stage == 'forward':
            text.append('\n  On a GPU this is "CUDA error: device-side assert triggered", at some later line.')
    run = outcome.run
    if run.nonfinite_losses:
        shown = ', '.join(f'{name} = {run.losses[name]}' for name in run.nonfinite_losses)
        text.append(f'\n  losses that are not finite: {shown}')
    if run.nonfinite_gradients:
        names = run.nonfinite_gradients
        text.append(f'\n  gradients that are not finite: {len(names)}, nearest to the loss {", ".join(names[:3])}')
    for line in [*outcome.notes, *outcome.warnings[:3]]:
        text.append(f'\n  {line}', style='dim')
    console.print(text, soft_wrap=True)
    for finding in outcome.findings:
        if (finding.code, finding.next_step) not in printed:
            printed.add((finding.code, finding.next_step))
            console.print(render_finding(finding, '  likely cause: ', verbose), soft_wrap=True)


def _print_samples(console: Console, outcomes: List[Outcome]) -> None:
    """Print a line per sample, the newest batch first."""
    _print_line(console, '\nreplayed samples, newest batch first:')
    # Failures are never left out.
    shown = outcomes if len(outcomes) <= _MOST_ROWS else sorted(outcomes, key=lambda o: not o.fails)[:_MOST_ROWS]
    for outcome in shown:
        recorded, loss = outcome.recorded, outcome.run.losses.get('loss')
        place = '' if recorded.iteration is None else f'iteration {recorded.iteration}, '
        words = [outcome.status, _describe_labels(outcome), '' if loss is None else f'loss {loss:.4g}']
        line = f'  {place}{visible_name(recorded.source)}: {", ".join(filter(None, words))}'
        _print_line(console, line, _STYLES[outcome.status])
    if len(outcomes) > len(shown):
        _print_line(console, f'  and {len(outcomes) - len(shown)} more that do not fail', 'dim')


def _describe_labels(outcome: Outcome) -> str:
    if not outcome.trained and not outcome.loaded:
        return ''
    return '; '.join(describe_reasons(judged.tally) for judged in outcome.invalid.values()) or 'valid labels'


def _print_verdict(console: Console, report: Dict[str, Any]) -> None:
    failing, outcomes, ours = report['failing'], report['outcomes'], report['our_failures']
    missing = len(report['not_found'])
    run = len(outcomes) - missing
    if failing:
        _print_line(console, f'\n{len(failing)} of {run} replayed samples fail.', 'bold red')
    if failing and report['same_for_all']:
        _print_line(
            console,
            f'All of them fail by {report["same_for_all"]}, and no label explains it: look at the config and the '
            'model rather than at a sample (mmguard check CONFIG).',
        )
    if not failing and not ours:
        _print_line(console, f'\nNone of {run} replayed samples fails.', 'bold green')
        _print_line(console, _describe_nothing_found())
    if ours:
        errors = dict.fromkeys(f'{o.raised} at {o.raised.place}' for o in ours if o.raised is not None)
        _print_line(
            console,
            f'\nmmguard itself failed on {len(ours)} of {run} samples: {"; ".join(errors)}. This is '
            f'neither your config nor your data: {REPORT_ADVICE}.',
            'bold red',
        )
    if missing:
        _print_line(
            console,
            f'{quantity(missing, "sample was", "samples were")} not found here, and may be the failing ones.',
            'yellow',
        )
    if report['older_batches']:
        _print_line(
            console, f'{report["older_batches"]} older batches were not replayed; --last N takes N batches.', 'dim'
        )


def _describe_nothing_found() -> str:
    return (
        'Their labels are valid, and their losses and gradients finite on the CPU: none of these samples alone ended '
        'the training. Remaining causes: random crops that these seeds did not draw (--seeds 20), diverged weights, '
        'half precision, memory, several ranks (docs/ranks.md), or the hardware.'
    )


def as_json(report: Dict[str, Any]) -> Dict[str, Any]:
    """Return the same as plain data."""
    plain = {
        key: value for key, value in report.items() if key not in ('outcomes', 'failing', 'not_found', 'our_failures')
    }
    plain['failing'] = list(dict.fromkeys(outcome.path for outcome in report['failing']))
    plain['not_found'] = [outcome.recorded.path for outcome in report['not_found']]
    plain['our_failures'] = [outcome.path for outcome in report['our_failures']]
    plain['samples'] = [outcome.to_json() for outcome in report['outcomes']]
    return plain
