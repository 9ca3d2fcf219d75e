"""Output of ``mmguard trace``: a trace as a table, and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from itertools import groupby
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

from mmguard.commands.console import Table, Text
from mmguard.commands.trace.snapshot import Change, Snapshot
from mmguard.commands.trace.tracer import SampleTrace, StepTrace
from mmguard.labels.spaces import KINDS, LabelSpaces
from mmguard.text import quantity, visible_name

_SIGNS = {'appears': '+', 'grows': '+', 'vanishes': '-', 'shrinks': '-', 'becomes': '→'}
#: Maximum number of sentences per step.
MAX_SENTENCES = 12


def print_trace(console: Any, trace: SampleTrace, spaces: LabelSpaces, value: Optional[int]) -> None:
    """Print a table of the steps of a sample; if a ``value`` is given, with its count after each step."""
    # Not as the title of the table, which would break the name.
    console.print(Text(f'sample {trace.index}: {visible_name(trace.image)}', style='italic'), soft_wrap=True)
    table = Table()
    table.add_column('after', overflow='fold')
    table.add_column('size', justify='right', no_wrap=True)
    if value is not None:
        table.add_column(str(value), justify='right', no_wrap=True, style='bold')
    table.add_column('what changed', overflow='fold')
    for leg in trace.legs:
        size = leg.after.size
        row: List[Any] = [Text(leg.name), '' if size is None else f'{size[0]} x {size[1]}']
        if value is not None:
            row.append(_count(leg.after, value))
        table.add_row(*row, _describe_labels(leg, spaces))
    console.print(table)
    if trace.error:
        console.print(f'the pipeline ended here: {trace.error}', style='bold red')


def _count(after: Snapshot, value: int) -> str:
    counts = after.values if after.label is not None else after.labels
    return '' if after.label is None and after.instances is None else f'{counts.get(value, 0):,}'


def _describe_labels(step: StepTrace, spaces: LabelSpaces) -> Any:
    lines = Text()
    if step.after.note:
        lines.append(f'{step.after.note}\n', style='yellow')
    for fault in step.faults:
        lines.append(f'{fault.what}{f": {fault.where}" if fault.where else ""}\n', style='bold red')
    sentences = group_changes(step.changes, spaces)
    for sentence, invalid in sentences[:MAX_SENTENCES]:
        lines.append(f'{sentence}\n', style='bold red' if invalid else 'dim' if sentence[0] == '-' else '')
    if len(sentences) > MAX_SENTENCES:
        lines.append(f'... and {len(sentences) - MAX_SENTENCES} more\n')
    lines.rstrip()
    return lines


def group_changes(changes: Sequence[Change], spaces: LabelSpaces) -> List[Tuple[str, bool]]:
    """Return (sentence, is_invalid) for each kind of change: ``('+ 225 appears (17 px, invalid): ...', True)``."""
    groups: Dict[Tuple[Any, ...], List[Change]] = {}
    for change in changes:
        invalid = change.makes is not None and _is_invalid(spaces, change.makes, change.kind)
        key = (change.what, change.to, change.kind, change.origin, invalid)
        groups.setdefault(key, []).append(change)
    shown = []
    for (what, to, kind, origin, invalid), group in groups.items():
        amount = quantity(sum(change.count for change in group), 'px' if kind == 'pixels' else 'instance')
        verb = {'vanishes': 'vanish'}.get(what, what[:-1]) if len(group) > 1 else what
        sentence = f'{_SIGNS[what]} {format_ranges(sorted(change.value for change in group))} {verb}'
        sentence += '' if to is None else f' {to}'
        shown.append((f'{sentence} ({amount}{", invalid" if invalid else ""}): {origin}', invalid))
    return sorted(shown, key=lambda one: not one[1])


def format_ranges(values: List[int]) -> str:
    """Return sorted values as a text of ranges, such as ``'0..18, 255'``."""
    runs = [list(run) for _, run in groupby(enumerate(values), lambda item: item[1] - item[0])]
    shown = [str(run[0][1]) if len(run) == 1 else f'{run[0][1]}..{run[-1][1]}' for run in runs]
    more = f' and {len(shown) - MAX_SENTENCES} more' if len(shown) > MAX_SENTENCES else ''
    return ', '.join(shown[:MAX_SENTENCES]) + more


def _is_invalid(spaces: LabelSpaces, value: int, kind: str) -> bool:
    space = spaces.get(kind)
    return space is not None and not space.is_valid(value)


def find_invalid(trace: SampleTrace, spaces: LabelSpaces) -> Dict[str, List[int]]:
    """Return the values that are invalid at any step, as {kind: values}."""
    found: Dict[str, Set[int]] = {kind: set() for kind in KINDS}
    for leg in trace.legs:
        for kind, counts in zip(KINDS, (leg.after.values, leg.after.labels)):
            found[kind].update(value for value in counts if _is_invalid(spaces, value, kind))
    return {kind: sorted(values) for kind, values in found.items()}


def find_mistakes(trace: SampleTrace, spaces: LabelSpaces) -> List[str]:
    """Return descriptions of the invalid values, faulty boxes and wrongly mapped labels after all steps."""
    values = [f'{format_ranges(values)} ({kind})' for kind, values in find_invalid(trace, spaces).items() if values]
    faults = [f'{fault.what} after {leg.name}' for leg in trace.legs for fault in leg.faults]
    return list(dict.fromkeys([*values, *faults]))


def find_coverage(traces: Sequence[SampleTrace], spaces: LabelSpaces) -> Tuple[List[str], List[str]]:
    """Return the kinds of annotations that were checked in the samples, and the kinds that were not checked.

    Labels are not checked if the number of classes is unknown.
    """
    shots = [leg.after for story in traces for leg in story.legs]
    checked = {'boxes' for shot in shots for one in shot.instances or () if one.box is not None}
    others = {name for shot in shots for name in (*shot.unchecked, shot.note) if name}
    for kind, holds in zip(KINDS, (any(s.label is not None for s in shots), any(s.instances for s in shots))):
        if holds and spaces.get(kind) is not None:
            checked.add(f'labels of {kind}')
        elif holds:
            others.add(f'labels of {kind} (num_classes is not known)')
    return sorted(checked), sorted(others)


def print_verdict(console: Any, traces: Sequence[SampleTrace], spaces: LabelSpaces) -> None:
    """Print the invalid values with their samples, and the kinds of annotations that were checked."""
    found: Dict[str, List[SampleTrace]] = {}
    for story in traces:
        for mistake in find_mistakes(story, spaces):
            found.setdefault(mistake, []).append(story)
    number, (checked, unchecked) = quantity(len(traces), 'sample'), find_coverage(traces, spaces)
    for mistake, where in found.items():
        place = f' (in {len(where)} of {number}, first: --sample {where[0].index} --seed {where[0].seed})'
        place = place if len(traces) > 1 else ''
        console.print(f'invalid at some step: {mistake}{place}', style='bold red')
    if not found and checked:
        console.print(f'valid at every step of {number}: {", ".join(checked)}')
    if unchecked:
        console.print(f'not checked: {", ".join(unchecked)}', style='yellow')
    if len(traces) == 1 and traces[0].is_random:
        console.print('The pipeline is random, and this trace shows one run of it. `--samples 50` traces more.')


def as_json(traces: Sequence[SampleTrace], spaces: LabelSpaces) -> Dict[str, Any]:
    """Return the first trace and the mistakes in all traces as plain data."""
    story, (pixels, instances) = traces[0], (spaces.pixels, spaces.instances)
    checked, unchecked = find_coverage(traces, spaces)
    return {
        'found': True,
        'sample': story.index,
        'image': story.image,
        'error': story.error,
        'num_classes': pixels and pixels.num_classes,
        'instance_classes': instances and instances.num_classes,
        'invalid': find_invalid(story, spaces),
        'random': story.is_random,
        'checked': checked,
        'not_checked': unchecked,
        'samples': [
            {'sample': one.index, 'seed': one.seed, 'error': one.error, 'mistakes': find_mistakes(one, spaces)}
            for one in traces
        ],
        'steps': [
            {
                'step': leg.name,
                'size': leg.after.size,
                'values': leg.after.values,
                'labels': None if leg.after.instances is None else leg.after.labels,
                'note': leg.after.note,
                'faults': [fault._asdict() for fault in leg.faults],
                'changes': list(map(asdict, leg.changes)),
            }
            for leg in story.legs
        ],
    }
