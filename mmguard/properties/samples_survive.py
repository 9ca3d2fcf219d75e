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
            results += _check_leaf(program, leaf, split, tries)
    return results


def _check_leaf(program: Program, leaf: Any, split: str, tries: int) -> List[Result]:
    if not hasattr(leaf, 'prepare_data') or not hasattr(leaf, 'get_data_info'):
        raise Unavailable(f'{type(leaf).__name__} is not a data set of MMEngine')
    subject = f'{split} ({type(leaf).__name__})'
    results = _describe_filtered(leaf, subject)
    dropped: Counter = Counter()
    loads, files = 0, spread(len(leaf), program.samples)
    for index in files:
        asked = leaf.get_data_info(index)
        drops: Dict[str, int] = {}
        for seed in range(tries):
            left: List[str] = []
            failed: List[str] = []

            def on_step(name: str, found: Any, left: List[str] = left) -> Any:
                if found is None and not left:
                    left.append(name)
                return found

            with program.scope(), watched_steps(leaf, on_step, failed):
                seed_all(seed)
                try:
                    sample = leaf.prepare_data(index)
                except Exception as error:
                    where = failed[0] if failed else 'the data set'
                    return [
                        *results,
                        broken(f'{subject}, {where}', f'{_file(asked)}: {Failure.describe(error)}', step=where),
                    ]
            loads += 1
            if sample is None:
                where = left[0] if left else 'the data set'
                drops[where] = drops.get(where, 0) + 1
            elif _is_other(asked, sample):
                return [*results, broken(subject, f'{_file(asked)} was asked for, another image was returned')]
            if program.seconds_left() < 0:
                break
        if sum(drops.values()) == tries and tries > 1:
            step = max(drops, key=lambda name: drops[name])
            evidence = f'{_file(asked)} was dropped in {tries} of {tries} loads: it is never trained on'
            return [*results, broken(f'{subject}, {step}', evidence, step=step)]
        dropped.update(drops)
        if program.seconds_left() < 0:
            break
    for step, count in dropped.items():
        blame = broken if split == 'val' else setting
        results.append(blame(f'{subject}, {step}', f'drops a sample in {count} of {loads} loads', step=step))
    return results or [holds(subject, samples=len(files))]


def _file(info: Dict[str, Any]) -> str:
    return os.path.basename(str(info.get('img_path') or info.get('img_id') or 'a sample'))


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
    if listed <= len(leaf):
        return []
    return [setting(f'{subject}, filter_cfg', f'leaves out {listed - len(leaf):,} of {listed:,} images')]
