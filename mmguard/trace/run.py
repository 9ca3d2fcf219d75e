"""``mmguard trace``."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Dict, List, Optional

from mmguard.trace.samples import Tracer, load_config
from mmguard.trace.snapshot import Instance
from mmguard.trace.story import Story
from mmguard.trace.terminal import Space, print_story, ranges

CLEAN, FINDINGS, COULD_NOT_RUN = 0, 1, 2


def trace(
    config_file: Path,
    sample: Optional[str] = None,
    value: Optional[int] = None,
    split: str = 'train',
    seed: int = 0,
    num_classes: Optional[int] = None,
    json_file: Optional[str] = None,
) -> int:
    """Traces one sample, or the first one that shows a value; returns the exit code.

    Args:
        config_file (Path): An mm config.
        sample (str, optional): Number or path. ``None``: with ``value`` all samples are searched, else the first.
        value (int, optional): The value that is asked for.
        split (str): ``'train'``, ``'val'``, ``'test'``.
        seed (int): Of random transforms.
        num_classes (int, optional): ``None``: as the config's guards or heads say.
        json_file (str, optional): Where to write the story; ``'-'``: standard output, and nothing else there.
    """
    from mmguard.console import Console

    console = Console(file=sys.stderr if json_file == '-' else sys.stdout, markup=False, emoji=False, highlight=False)
    with redirect_stdout(sys.stderr):  # configs and pycocotools print; standard output may be for JSON
        config = load_config(config_file)
        tracer = Tracer(config, split, seed)
        space = space_of(config, split, num_classes)
        story = _chosen(tracer, console, sample, value)
    if story is None:
        console.print(f'{value} appears in none of the {len(tracer):,} samples of {split}, at no step (seed {seed})')
        if json_file is not None:
            _write(json_file, {'found': False, 'value': value, 'samples': len(tracer)})
        return CLEAN
    print_story(console, story, space, value)
    found = invalid_in(story, space)
    if json_file is not None:
        _write(json_file, as_json(story, space))
    if story.error:
        return COULD_NOT_RUN
    if any(found.values()):
        told = [f'{ranges(sorted(values))} ({kind})' for kind, values in found.items() if values]
        console.print(f'invalid, at one step or another: {"; ".join(told)}', style='bold red')
        return FINDINGS
    console.print('every value is valid at every step' if space.num_classes or space.instance_classes else '')
    return CLEAN


def _chosen(tracer: Tracer, console: Any, sample: Optional[str], value: Optional[int]) -> Optional[Story]:
    if sample is not None or value is None:
        return tracer.trace(tracer.find(sample or '0'))
    with console.status(f'looking for {value} in {len(tracer):,} samples'):
        return next((story for story in tracer.stories() if story.holds(value)), None)


def invalid_in(story: Story, space: Space) -> Dict[str, set]:
    """Kind -> values that are invalid at any step."""
    found: Dict[str, set] = {'pixels': set(), 'instances': set()}
    for leg in story.legs:
        for kind, counts in (('pixels', leg.after.values), ('instances', leg.after.labels)):
            found[kind].update(v for v in counts if space.is_invalid(v, kind))
    return found


def space_of(config: Any, split: str, num_classes: Optional[int]) -> Space:
    """What is valid: as the guards of the pipeline say, or else the heads."""
    from mmguard.report.log_config import logged_space

    plain = config.to_dict() if hasattr(config, 'to_dict') else dict(config)
    spaces = {kind: logged_space(plain, split, kind) for kind in ('pixels', 'instances')}
    pixels, instances = spaces['pixels'], spaces['instances']
    return Space(
        num_classes or (None if pixels is None else pixels.num_classes),
        255 if pixels is None or pixels.ignore_index is None else pixels.ignore_index,
        num_classes or (None if instances is None else instances.num_classes),
    )


def as_json(story: Story, space: Space) -> Dict[str, Any]:
    """The story as plain data."""
    return {
        'found': True,
        'sample': story.index,
        'image': story.image,
        'mixed': story.mixed,
        'error': story.error,
        'num_classes': space.num_classes,
        'instance_classes': space.instance_classes,
        'invalid': {kind: sorted(values) for kind, values in invalid_in(story, space).items()},
        'steps': [
            {
                'step': leg.name,
                'size': leg.after.size,
                'values': {str(value): count for value, count in leg.after.values.items()},
                'instances': None
                if leg.after.instances is None
                else [
                    {'label': i.label, 'box': [_finite(c) for c in i.box], 'ignored': i.ignored}
                    for i in leg.after.instances
                ],
                'note': leg.after.note,
                'changes': [
                    {
                        'what': change.what,
                        'kind': change.kind,
                        'value': change.value,
                        'to': change.to,
                        'count': change.count,
                        'origin': change.origin,
                    }
                    for change in leg.changes
                ],
            }
            for leg in story.legs
        ],
    }


def _instances(instances: Optional[List[Instance]]) -> Optional[List[Dict[str, Any]]]:
    if instances is None:
        return None
    return [{'label': i.label, 'box': [_finite(c) for c in i.box], 'ignored': i.ignored} for i in instances]


def _finite(corner: float) -> Any:
    """JSON has no nan."""
    return corner if abs(corner) < float('inf') else str(corner)


def _write(target: str, record: Dict[str, Any]) -> None:
    from mmguard.files import write_or_print

    write_or_print(target, json.dumps(record, indent=1))
