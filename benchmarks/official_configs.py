"""Check every config that ships with mmseg and mmdet: ``python -m benchmarks.official_configs``.

Prints the number of configs with findings per rule, and the time per config. ``--list`` prints every finding.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import time
import traceback
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import List, NamedTuple, Optional, Tuple

FRAMEWORKS = ('mmseg', 'mmdet')


class Checked(NamedTuple):
    """Result of checking one config.

    Attributes:
        file (str): The config, relative to the configs of its framework.
        seconds (float): Time to read and check it.
        findings (list[tuple]): Code, severity, path and message of each finding.
        error (str, optional): The traceback if checking it raised.
        unreadable (str, optional): Why mmengine cannot read it: a base that is not in the wheel, or not installed.
        notes (list[str]): Parts that could not be checked.
    """

    file: str
    seconds: float
    findings: List[Tuple[str, str, str, str]]
    error: Optional[str]
    unreadable: Optional[str]
    notes: List[str]


def shipped_configs() -> List[Tuple[str, Path]]:
    """Return (root, file) of every config in the wheels, including those in ``_base_``."""
    found = []
    for framework in FRAMEWORKS:
        spec = importlib.util.find_spec(framework)
        if spec is not None and spec.origin is not None:
            root = Path(spec.origin).parent / '.mim' / 'configs'
            found += [(f'{root.parent.parent.parent}', file) for file in sorted(root.rglob('*.py'))]
    return found


def check(where: Tuple[str, Path]) -> Checked:
    """Read and check one config."""
    from mmguard.config.read import read_config
    from mmguard.findings import diagnose, select_rules

    root, file = where
    name = str(file.relative_to(root)).replace('.mim/configs/', '')
    started = time.perf_counter()
    try:
        config = read_config(str(file))
    except Exception as error:  # mmengine's own
        return Checked(name, time.perf_counter() - started, [], None, f'{type(error).__name__}: {error}', [])
    try:
        findings = diagnose(config=config, rules=select_rules())
        texts = [str(finding) for finding in findings]
        assert all(texts)
        found = [(f.code, f.severity, f.places[0], f.title) for f in findings]
        return Checked(name, time.perf_counter() - started, found, None, None, config.notes)
    except Exception:  # to be counted, whatever it is
        return Checked(name, time.perf_counter() - started, [], traceback.format_exc(), None, [])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--list', action='store_true', help='name every finding')
    parser.add_argument('--workers', type=int, default=os.cpu_count())
    args = parser.parse_args()
    with ProcessPoolExecutor(args.workers) as pool:
        results = list(pool.map(check, shipped_configs(), chunksize=32))
    by_code = defaultdict(list)
    for result in results:
        for code in sorted({finding[0] for finding in result.findings}):
            by_code[code].append(result)
    print('| code | severity | configs | by framework |\n| --- | --- | ---: | --- |')
    for code, found in sorted(by_code.items()):
        severities = Counter(f[1] for result in found for f in result.findings if f[0] == code)
        frameworks = Counter(result.file.split('/')[0] for result in found)
        shares = ', '.join(f'{name} {count}' for name, count in sorted(frameworks.items()))
        print(f'| {code} | {", ".join(sorted(severities))} | {len(found)} | {shares} |')
    failed = [result for result in results if result.error]
    seconds = sorted(result.seconds for result in results)
    unreadable = [result for result in results if result.unreadable]
    clean = sum(not (r.findings or r.error or r.unreadable) for r in results)
    print(f'\n{len(results)} configs: {clean} without finding, {len(failed)} exceptions, {len(unreadable)} unreadable')
    print(
        f'seconds per config: median {statistics.median(seconds):.3f}, 99 % {seconds[int(len(seconds) * 0.99)]:.3f}, '
        f'largest {seconds[-1]:.3f} (the first of a process imports the framework)'
    )
    for result in unreadable:
        print(f'mmengine cannot read {result.file}: {result.unreadable}')
    for result in failed:
        print(f'\n{result.file}\n{result.error}')
    if args.list:
        for code, found in sorted(by_code.items()):
            for result in found:
                for finding in result.findings:
                    if finding[0] == code:
                        print(f'{code} {result.file}: {finding[2]}: {finding[3]}')


if __name__ == '__main__':
    main()
