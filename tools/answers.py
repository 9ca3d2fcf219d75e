"""Answers of mmguard's commands to the rebuilt reports: collect, compare between commits, judge by truth.json.

    python tools/answers.py collect OUT.json --bin .venv/bin [--lab LAB/bin] [--reports DIR] ["DATA --num-classes 11"]
    python tools/answers.py compare BEFORE.json AFTER.json [--texts]
    python tools/answers.py judge ANSWERS.json
    python tools/answers.py ranks ANSWERS.json

``collect`` copies each report, runs its ``run.sh`` (or its ``gen.py`` and the commands of truth.json) with a
``mmguard`` that records every call, applies the first edit of each answer, and explains each log again with config and
labels. ``judge`` counts harmful and right first answers and false all-clears. ``ranks`` compares the rank of a log's
true cause with and without config and labels.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Dict, Iterator, List

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'tests/findings/reports'))

import truth

#: Environment variables of a report's commands; apart from these and the paths nothing of the environment is passed.
FIXED = dict(PYTHONPATH='..', PYTHONHASHSEED='0', OMP_NUM_THREADS='1', CUDA_VISIBLE_DEVICES='', LANG='C.UTF-8')

#: Commands for a report without commands in truth.json.
CONFIGS = ['check config*.py', 'scan config*.py']

#: Lines of a run.sh that call mmguard, follow its advice, set a variable, generate files, or write a log.
NEEDED = r'mmguard|follow|\$G|gen|\.log|(env|lib)\.sh|export|msd'

#: The part of a line of a run.sh that writes a log.
WRITES_LOG = r'^.*?> (\S+\.log)( 2>&1)?(; |$)'

#: The ``mmguard`` on the path of a report: runs the real command, and writes arguments, exit code, JSON, the explained
#: log and the output file.
RECORDER = r"""#!/bin/sh
n=$(ls "$RECORD" | grep -c args)
for word; do printf '%s\0' "$word"; done > "$RECORD/$n.args"
command=$1
[ "$command" = explain ] && [ -f "$2" ] && cp "$2" "$RECORD/$n.log"
case $command in apply|fix) ;; *) set -- "$@" --json "$RECORD/$n.json" ;; esac
PYTHONPATH=$CODE:$PYTHONPATH timeout {limit} {python} -c 'from mmguard.cli import main; raise SystemExit(main())' "$@"
code=$?
echo $code > "$RECORD/$n.code"
[ "$command" = apply ] && while [ $# -gt 1 ]; do
  [ "$1" = -o ] && [ -f "$2" ] && cp "$2" "$RECORD/$n.out"; shift
done
exit $code
"""


def collect(args: argparse.Namespace, targets: List[str]) -> int:
    """Write the answers to every report and target to a JSON file."""
    root = Path(tempfile.mkdtemp(prefix='answers'))
    code = subprocess.check_output([args.bin / 'python', '-c', 'import mmguard; print(mmguard.__file__)'], text=True)
    python = {'venv': args.bin, 'lab': args.lab or args.bin}
    for name, folder in python.items():
        write_tools(root / name, folder.absolute(), args.limit)
    reports = truth.read_truth()
    found = {name: parent / name for parent in args.reports for name in reports if (parent / name).is_dir()}
    names = fnmatch.filter(sorted(found), args.only)

    def answer(name: str) -> List[Dict[str, Any]]:
        work = root / 'work' / name.replace('/', '-')
        environ = {
            **FIXED,
            **{key: str(root / key.lower()) for key in ('VENV', 'LAB')},
            'RECORD': str(work / 'record'),
            'TMPDIR': str(work / 'tmp'),
            'HOME': str(work / 'home'),
            'CODE': str(Path(code.strip()).parents[1]),
            'PATH': f'{root / "venv"}:{os.environ["PATH"]}',
        }
        for made in ('record', 'tmp'):
            (work / made).mkdir(parents=True)
        if name in names:
            folder, commands = work / 'set' / Path(name).name, reports[name].get('commands', CONFIGS)
            run(copy_report(found[name], work, commands), folder, environ, 20 * args.limit)
            run(edit_script(work / 'record'), folder, environ, 20 * args.limit)
            typed = found[name] / 'run.sh'
            text = typed.read_text() if typed.exists() else ''
            run(pair_script(work / 'record', text), folder, environ, 20 * args.limit)
        else:
            run(f'mmguard scan {name}', work, environ, args.limit)
        recorded = list(read_record(work / 'record', str(work)))
        shutil.rmtree(work)
        print(f'{name}: {" ".join(str(one["exit"]) for one in recorded)}', flush=True)
        return recorded

    with ThreadPoolExecutor(args.jobs) as pool:
        wanted = [*names, *targets]
        answers = dict(zip(wanted, pool.map(answer, wanted)))
    args.out.write_text(json.dumps(answers, indent=1, sort_keys=True))
    shutil.rmtree(root)
    return 0


def write_tools(folder: Path, real: Path, limit: int) -> None:
    """Write the recorder, and the programs of an environment that a run.sh calls."""
    folder.mkdir()
    texts = dict.fromkeys(('python', 'python3'), f'#!/bin/sh\nexec {real}/python "$@"\n')
    texts['torchrun'] = f'#!/bin/sh\nexec {real}/python -m torch.distributed.run "$@"\n'
    texts['mmguard'] = RECORDER.replace('{limit}', str(limit)).replace('{python}', f'{real}/python')
    for name, text in texts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


def copy_report(report: Path, work: Path, commands: Any) -> str:
    """Copy a report and the common files of its set; return the script that answers it."""
    shutil.copytree(report, work / 'set' / report.name)
    for path in report.parent.iterdir():
        if path.is_file():
            shutil.copy(path, work / 'set' / path.name)
    typed = (report / 'run.sh').read_text() if (report / 'run.sh').exists() else ''
    for name in re.findall(r'\.\./(\w+); ', typed):
        shutil.copytree(report.parent / name, work / 'set' / name)  # a report that this one runs, too
    subprocess.run(['chmod', '-R', 'u+w', work], check=True)
    for written in re.findall(r' -o (\S+\.py)', typed):
        (work / 'set' / report.name / written).unlink(missing_ok=True)
    code = (report / 'gen.py').read_text() if (report / 'gen.py').exists() else ''
    if typed:
        # The output of a report's own training matters only if a command reads it; a log that exists is not rewritten.
        lines = [
            re.sub(WRITES_LOG, lambda it: '' if (report / it[1]).exists() else it[0], line)
            for line in typed.splitlines()
        ]
        first = [] if re.search(r'gen\.py|\$G', typed) or not code else ['$LAB/python gen.py']
        return '\n'.join([*first, *(line.replace('| head -30', '') for line in lines if re.search(NEEDED, line))])
    lab = any(word in code for word in ('nibabel', 'nnUNet_raw'))
    # A report may consist of a log only.
    made = [f'{"$LAB/" if lab else ""}python gen.py{option}' for option in ('', ' data', ' --data') if code]
    # A pattern of files is one command per file.
    split = [[*words.split(' ', 2), ''][:3] for words in commands]
    tool = '$LAB/mmguard' if lab else 'mmguard'
    return '\n'.join(
        [' || '.join(made), *(f'for file in {path}; do {tool} {name} $file {more}; done' for name, path, more in split)]
    )


def edit_script(record: Path) -> str:
    """Return the commands that apply guards, and the first edit of check and of scan, to the configs of a report."""
    lines: Dict[str, str] = {}
    for path in sorted(record.glob('*.args')):
        command, target, *more = [*path.read_text().split('\0')[:-1], '']
        said = path.with_suffix('.json')
        if command not in ('check', 'scan') or not target.endswith('.py') or not said.exists():
            continue
        start, stem = f'mmguard apply {target}', f'-o ../../tmp/{Path(target).stem}'
        lines.setdefault(f'{stem}_guarded', f'{start} {stem}_guarded.py')
        if any(edit.get('number') for one in findings_in(json.loads(said.read_text())) for edit in one['edits']):
            options = ' '.join(['--scan', *more] if command == 'scan' else [])
            lines[f'{stem}_{command}'] = f'{start} --edit 1 {stem}_{command}.py {options}'
    return '\n'.join(lines.values())


def pair_script(record: Path, typed: str) -> str:
    """Return commands that explain each log with a config, and with labels, unless the report's own commands did.

    Configs and data that its run.sh (``typed``) does not name were made later, by following advice: the log is older.
    """
    called = [
        path.read_text().split('\0')[:-1] for path in sorted(record.glob('*.args'), key=lambda one: int(one.stem))
    ]
    explained = [words[1:] for words in called if words[0] == 'explain']
    given: Dict[str, List[str]] = {}
    for command, *words in called:
        if command in ('check', 'scan') and words and (not typed or words[0] in typed):
            option = '--config' if words[0].endswith('.py') else '--data'
            if option == '--config' or command == 'scan':
                given.setdefault(option, words[:1] if option == '--config' else explain_options(words))
    logs = dict.fromkeys(words[0] for words in explained if len(words) == 1)
    paired = {(words[0], option) for words in explained for option in given if option in words}
    return '\n'.join(
        shlex.join(['mmguard', 'explain', log, option, *words])
        for log in logs
        for option, words in given.items()
        if (log, option) not in paired
    )


def explain_options(words: List[str]) -> List[str]:
    """Return the target of a scan, and those of its options that `explain --data` also accepts."""
    taken = [words[0]]
    for option, value in zip(words[1:], words[2:]):
        taken += [option, value] if option in ('--num-classes', '--ignore-index', '--framework') else []
    return [*taken, *(word for word in words if word == '--reduce-zero-label')]


def run(script: str, folder: Path, environ: Dict[str, str], limit: int) -> None:
    """Run a script; after a time limit end it with all processes that it started."""
    log = open(Path(environ['RECORD']).parent / 'log', 'a')  # noqa: SIM115
    process = subprocess.Popen(
        ['bash', '-c', script], cwd=folder, env=environ, stdout=log, stderr=log, start_new_session=True
    )
    try:
        process.wait(limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def read_record(record: Path, work: str) -> Iterator[Dict[str, Any]]:
    """Yield every recorded call as a dict: arguments, exit code, JSON, explained log, written file."""

    def text(path: Path) -> str:
        return path.read_text(errors='replace').replace(work, 'WORK') if path.exists() else ''

    for path in sorted(record.glob('*.args'), key=lambda one: int(one.stem)):
        code, said = text(path.with_suffix('.code')), text(path.with_suffix('.json'))
        yield {
            'args': text(path).split('\0')[:-1],
            'exit': int(code) if code else None,
            'json': json.loads(said) if said else None,
            'log': text(path.with_suffix('.log')),
            'written': text(path.with_suffix('.out')),
        }


def findings_in(said: Any) -> List[Dict[str, Any]]:
    """Return the findings in the JSON of a check, a scan, or an explanation with config or data."""
    parts = [said or {}, *(said or {}).get('datasets', ())]
    return [finding for part in parts for finding in part.get('findings', ())]


def data_of(answer: Dict[str, Any], texts: bool = False) -> Dict[str, Any]:
    """Return the parts of an answer that must be equal between two commits; with ``texts`` the whole JSON, too."""
    said = answer['json'] or {}
    found = findings_in(said)
    edits = [edit for one in found for edit in one.get('edits', ())]
    data = {
        'exit': answer['exit'],
        'codes': sorted(one['code'] for one in found),
        'order': [one['code'] for one in found],
        'error': (said.get('error') or {}).get('code'),
        'causes': [[cause['codes'], cause.get('standing')] for cause in said.get('causes', ())],
        **{f'edit.{key}': [edit[key] for edit in edits if edit.get(key)] for key in ('config', 'files', 'options')},
        'written': answer['written'],
    }
    return {**data, 'texts': said} if texts else data


def compare(args: argparse.Namespace) -> int:
    """Print the differences between the answers of two commits; return 1 if there are any."""
    before, after = (json.loads(path.read_text()) for path in (args.before, args.after))
    differences = 0
    for name in sorted({*before, *after}):
        one, two = ({tuple(answer['args']): answer for answer in side.get(name, ())} for side in (before, after))
        for words in dict.fromkeys([*one, *two]):
            if words not in one or words not in two:
                print(f'{name}: {shlex.join(words)}: only {"before" if words in one else "after"}')
                differences += 1
                continue
            old, new = data_of(one[words], args.texts), data_of(two[words], args.texts)
            for key in (key for key in old if old[key] != new[key]):
                if key == 'order' and old['codes'] != new['codes']:
                    continue
                differences += 1
                before_it, after_it = (json.dumps(side[key], sort_keys=True)[:1500] for side in (old, new))
                print(f'{name}: {shlex.join(words)}: {key}\n  - {before_it}\n  + {after_it}')
    print(f'{differences} differences')
    return int(differences > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest='command', required=True)
    one = commands.add_parser('collect', help='further arguments: TARGETs to scan, each with its options')
    one.add_argument('out', type=Path)
    one.add_argument(
        '--reports',
        type=Path,
        action='append',
        default=[truth.REBUILT],
        help='a folder of more reports; may be repeated',
    )
    one.add_argument('--bin', type=Path, required=True, help='bin folder of the environment to measure')
    one.add_argument('--lab', type=Path, help='bin folder of one with nibabel, for the reports that need it')
    one.add_argument('--only', default='*', help='a pattern of reports, set0/*')
    one.add_argument('--jobs', type=int, default=2, help='reports at a time')
    one.add_argument('--limit', type=int, default=120, help='seconds per command')
    two = commands.add_parser('compare')
    two.add_argument('before', type=Path)
    two.add_argument('after', type=Path)
    two.add_argument('--texts', action='store_true')
    three = commands.add_parser('judge')
    three.add_argument('answers', type=Path)
    three.add_argument('-v', '--verbose', action='store_true', help='all reports, not only the harmful ones')
    four = commands.add_parser('ranks')
    four.add_argument('answers', type=Path)
    args, targets = parser.parse_known_args()
    if args.command == 'judge':
        return truth.print_verdicts(json.loads(args.answers.read_text()), args.verbose)
    if args.command == 'ranks':
        return truth.print_ranks(json.loads(args.answers.read_text()))
    return compare(args) if args.command == 'compare' else collect(args, targets)


if __name__ == '__main__':
    raise SystemExit(main())
