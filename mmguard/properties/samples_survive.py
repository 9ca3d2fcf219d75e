"""Every sample survives: the pipeline leaves each sample that is asked for, and no other in its place."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any, Dict, List

from mmguard.properties.program import Program, seed_all, spread
from mmguard.properties.result import Result, Unavailable, broken, holds, setting
from mmguard.properties.steps import watched_steps
from mmguard.properties.worker import Failure

#: Times that each sample is loaded: random steps may drop it now and then.
TRIES = 5
#: Data sets above this length are not listed a second time to see what was filtered out.
LISTED = 20_000


def check(program: Program) -> List[Result]:
    """Load samples of the training several times, those of the validation once."""
    results = []
    for split, tries in (('train', TRIES), ('val', 1)):
        try:
            leaves = program.leaves(split)
        except Exception as error:
            if split == 'train':
                raise Unavailable(f'the {split} data set: {error}') from error
            continue
        for leaf in leaves:
            if not hasattr(leaf, 'prepare_data') or not hasattr(leaf, 'get_data_info'):
                raise Unavailable(f'{type(leaf).__name__} is not a data set of MMEngine')
            subject = f'{split} ({type(leaf).__name__})'
            found = _describe_filtered(leaf, subject) + _check_leaf(program, leaf, subject, tries)
            results += found or [holds(subject, '', dict(samples=min(len(leaf), program.samples)))]
    return results


def _check_leaf(program: Program, leaf: Any, subject: str, tries: int) -> List[Result]:
    dropped: Counter = Counter()
    loads = 0
    for index in spread(len(leaf), program.samples):
        asked = leaf.get_data_info(index)
        file = os.path.basename(str(asked.get('img_path') or asked.get('img_id') or 'a sample'))
        drops: List[str] = []
        for seed in range(tries):
            left: List[str] = []
            failed: List[str] = []

            def on_step(name: str, found: Any, left: List[str] = left) -> Any:
                left.extend([name] * (found is None))
                return found

            with program.scope(), watched_steps(leaf, on_step, failed):
                seed_all(seed)
                try:
                    sample = leaf.prepare_data(index)
                except Exception as error:
                    step = (failed or ['the data set'])[0]
                    return [broken(f'{subject}, {step}', f'{file}: {Failure.describe(error)}', dict(step=step))]
            loads += 1
            if sample is None:
                drops.append((left or ['the data set'])[0])
            elif _is_other(asked, sample):
                return [broken(subject, f'{file} was asked for, another image was returned')]
            if program.seconds_left() < 0:
                break
        if len(drops) == tries > 1:
            step = Counter(drops).most_common(1)[0][0]
            evidence = f'{file} was dropped in {tries} of {tries} loads: it is never trained on'
            return [broken(f'{subject}, {step}', evidence, dict(step=step))]
        dropped.update(drops)
        if program.seconds_left() < 0:
            break
    blame = broken if tries == 1 else setting
    return [
        blame(f'{subject}, {step}', f'drops a sample in {count} of {loads} loads', dict(step=step))
        for step, count in dropped.items()
    ]


def _is_other(asked: Dict[str, Any], sample: Any) -> bool:
    labels = sample.get('data_samples') if isinstance(sample, dict) else None
    known = getattr(labels, 'metainfo', None) or {}
    names = [name for name in ('img_id', 'img_path') if name in asked and name in known]
    return bool(names) and all(str(asked[name]) != str(known[name]) for name in names)


def _describe_filtered(leaf: Any, subject: str) -> List[Result]:
    """Say how many samples filter_cfg leaves out."""
    if not getattr(leaf, 'filter_cfg', None) or getattr(leaf, 'test_mode', False) or len(leaf) > LISTED:
        return []
    try:
        listed = len(leaf.load_data_list())
    except Exception:  # its annotations may not be read twice
        return []
    words = f'leaves out {listed - len(leaf):,} of {listed:,} images'
    return [setting(f'{subject}, filter_cfg', words)] if listed > len(leaf) else []
