"""Write the mutants of the packages, draw some, run them with one process per package, and print the table."""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Dict, List, Tuple

#: Package -> the files to mutate, and the tests that should notice.
PACKAGES: Dict[str, Tuple[List[str], List[str]]] = {
    'functional': (
        ['mmguard/functional/*'],
        [
            'tests/functional',
            *[
                f'tests/nn/test_{name}.py'
                for name in ('check_target', 'loss_counts', 'torch_modules', 'torch_deletion', 'torch_parity')
            ],
            *[
                f'tests/losses/test_{name}.py'
                for name in ('cross_entropy_modes', 'cross_entropy_module', 'guarded_loss')
            ],
        ],
    ),
    'labels': (
        ['mmguard/labels/*'],
        [
            *[f'tests/labels/test_{name}.py' for name in ('labels', 'spaces', 'tally')],
            'tests/detection/test_guard_targets.py',
            'tests/transforms/test_instance_labels.py',
        ],
    ),
    'log': (
        ['mmguard/log/*'],
        [
            'tests/log',
            'tests/hooks/test_discovery.py',
        ],
    ),
    'facts': (['mmguard/facts/labels.py'], ['tests/findings/test_any_facts.py', 'tests/findings/test_engine.py']),
    'findings': (
        [f'mmguard/findings/{name}.py' for name in ('engine', 'finding', 'rule', 'edits')],
        [
            *[f'tests/findings/test_{name}.py' for name in ('engine', 'examples', 'any_facts', 'consequences')],
            *[f'tests/findings/test_{name}.py' for name in ('edits_of_maps', 'run_rules', 'causes')],
            'tests/commands/check/test_check_rules.py',
            'tests/commands/env/test_env_verdicts.py',
        ],
    ),
}
#: Leaves out the tests that start processes, compile, or measure: they take seconds for every mutant.
SLOW = 'not (asynchrony or exported or nobody_has_to_close or taken_away or ten_thousand or fake or compile)'
#: Files and folders that the tests read in addition to the package.
READ = ('conftest.py', 'benchmarks', 'configs', 'docs', 'tools')


def main() -> None:
    parser = argparse.ArgumentParser(prog='make mutants', description=__doc__)
    parser.add_argument('--draw', type=int, default=500, help='how many mutants are run')
    parser.add_argument('--seed', type=int, default=17)
    parser.add_argument('--only', help='a file of names, one a line: these are run instead')
    parser.add_argument('--results', default='mutants.json', help='where each mutant and its fate are written')
    args = parser.parse_args()
    written = write_mutants()
    if args.only:
        drawn = Path(args.only).read_text(encoding='utf-8').split()
    else:
        drawn = random.Random(args.seed).sample(written, min(args.draw, len(written)))
    print(f'{len(written)} mutants written, {len(drawn)} drawn (seed {args.seed})', flush=True)
    fates = run(drawn, Path(args.results).absolute())
    show(written, drawn, fates)


def write_mutants() -> List[str]:
    """Let mutmut write all mutants below ``mutants/``; return their names."""
    if not Path('mutants').exists():
        _generate()
    metas = sorted(Path('mutants').rglob('*.meta'))
    return [name for meta in metas for name in json.loads(meta.read_text(encoding='utf-8'))['exit_code_by_key']]


def _generate() -> None:
    files = [pattern for patterns, _ in PACKAGES.values() for pattern in patterns]
    with open('pyproject.toml', 'a', encoding='utf-8') as project:
        project.write(f'\n[tool.mutmut]\nsource_paths = ["mmguard"]\nonly_mutate = {json.dumps(files)}\n')
        project.write(f'also_copy = {json.dumps(READ)}\n')
    code = (
        'import mutmut.__main__ as m; m.set_mutant_under_test("mutant_generation"); m.makedirs("mutants")\n'
        'm.copy_src_dir(); m.copy_also_copy_files(); m.setup_source_paths(); m.store_lines_covered_by_tests()\n'
        'm.create_mutants(2)'
    )
    subprocess.run([sys.executable, '-c', code], check=True, stdout=subprocess.DEVNULL)


def package_of(mutant: str) -> str:
    return mutant.split('.')[1]


def run(drawn: List[str], results: Path) -> Dict[str, str]:
    """Run the drawn mutants; return mutant -> ``'killed'``, ``'survived'``, ``'timed out'`` or ``'not reached'``."""
    running = []
    for package, (_, tests) in PACKAGES.items():
        names = [name for name in drawn if package_of(name) == package]
        if names:
            todo = results.with_suffix(f'.{package}.todo')
            todo.write_text('\n'.join(names), encoding='utf-8')
            done = results.with_suffix(f'.{package}')
            done.unlink(missing_ok=True)
            pytest = [sys.executable, '-m', 'pytest', '-q', '-p', 'tools.mutants.plugin', '-p', 'no:cacheprovider']
            env = {**os.environ, 'MUTANTS': str(todo), 'FATES': str(done), 'PYTHONPATH': python_path()}
            command = [*pytest, '-p', 'no:timeout', '-m', 'not slow', '-k', SLOW, *tests]
            with open(results.with_suffix(f'.{package}.log'), 'w', encoding='utf-8') as log:
                running.append(subprocess.Popen(command, cwd='mutants', env=env, stdout=log, stderr=log))
    for one in running:
        one.wait()
    fates: Dict[str, str] = {}
    for package in PACKAGES:
        done = results.with_suffix(f'.{package}')
        if done.exists():
            for line in done.read_text(encoding='utf-8').splitlines():
                mutant, fate, _ = line.split('\t')
                fates[mutant] = fate
    results.write_text(json.dumps(fates, indent=1), encoding='utf-8')
    return fates


def python_path() -> str:
    """Return the PYTHONPATH with the mutated package instead of the original one."""
    return os.pathsep.join([str(Path('mutants').absolute()), *os.environ['PYTHONPATH'].split(os.pathsep)[1:]])


def show(written: List[str], drawn: List[str], fates: Dict[str, str]) -> None:
    columns = ('killed', 'survived', 'timed out', 'not reached', 'not run')
    print('| package | written | drawn | ' + ' | '.join(columns) + ' | score |\n|' + ' --- |' * (len(columns) + 4))
    for package in [*PACKAGES, 'all']:
        names = [name for name in drawn if package in (package_of(name), 'all')]
        count = Counter(fates.get(name, 'not run') for name in names)
        ran = len(names) - count['not run']
        score = f'{(count["killed"] + count["timed out"]) / ran:.1%}' if ran else '-'
        total = sum(package in (package_of(name), 'all') for name in written)
        print(
            f'| {package} | {total} | {len(names)} | ' + ' | '.join(str(count[one]) for one in columns), f'| {score} |'
        )
    for name in drawn:
        if fates.get(name) in ('survived', 'not reached'):
            print(f'{fates[name]}: {name}')


if __name__ == '__main__':
    main()
