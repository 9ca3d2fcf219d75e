"""Command ``mmguard explain``, which explains a code, or the error in a log."""

from __future__ import annotations

import argparse
import itertools
import os
import re
import shlex
import shutil
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

from mmguard.commands import CLEAN, FOUND
from mmguard.commands.arguments import RUN_CODE, VERBOSE, add_arguments, label, positive
from mmguard.errors import CannotRun
from mmguard.labels.numbering import FRAMEWORKS
from mmguard.language import Message, translate
from mmguard.text import shorten, visible_name

if TYPE_CHECKING:
    from mmguard.commands.explain.explanation import Explanation
    from mmguard.commands.explain.reader import Reader
    from mmguard.findings.finding import Finding
    from mmguard.formats.options import ScanOptions

#: Maximum number of characters of a quoted line.
_LONGEST = 200
_UNLABELED_QUESTION = (
    'Images without a label file train as background. Is that intended? `mmguard scan data.yaml` lists these images; a '
    'label file is found only if it has the stem of its image and the extension .txt.'
)
_CODE = re.compile(r'[A-Za-z]{2,8}\d{1,5}')

_ARGUMENTS = f"""\
what WHAT  a log file, a run folder, - for standard input, an error message, or a code such as MG102
--config CONFIG  check this config and its labels, too; a config in Python is executed
{RUN_CODE}--data TARGET  scan these labels, too: a TARGET of `mmguard scan`
--num-classes N  with --data: valid labels are 0..N-1
--ignore-index V  with --data: the label that is not trained on
--reduce-zero-label  with --data: 0 is ignored, and 1 is the first class
--framework NAME  with --data: the framework that trains on a COCO JSON
--json FILE  write the explanation as JSON (-: to standard output)
"""


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        'explain',
        help='explain what ended a training, from its log or traceback, or what a code such as MG102 means',
        description=(
            'Reads a traceback, a log, the folder of a run, or a message. Prints the error, its meaning and its '
            'causes, the most likely first. With --config or --data, it checks which causes apply. It also explains a '
            'rule code: MG1xx are about labels, MG2xx about a config, MG3xx about a run or its log, MG4xx about an '
            'error. Without WHAT, it lists all codes. Exit code: 0 if rule codes were explained or listed, or if the '
            'log shows no problem other than an early end; 1 if the log shows an error or a sign of one, or if config '
            'or labels have an error; 2 for an unknown rule code, or if nothing can be read.'
        ),
    )
    settings = dict(num_classes=positive, ignore_index=label, framework=list(FRAMEWORKS), what=dict(nargs='?'))
    add_arguments(parser, _ARGUMENTS + VERBOSE, **settings)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    what = (args.what or '').strip()
    if not what:
        print('\n'.join(f'{code}  {translate(summary)}' for code, summary in _summarize_codes().items()))
        return CLEAN
    if what != '-' and not os.path.exists(what) and not _is_message(what):
        return _explain_code(what)
    return _explain_log(args, what)


def _is_message(what: str) -> bool:
    """Return True if an argument is the text of a known error, and not a path."""
    from mmguard.commands.explain.explanation import explain_text

    found = explain_text([what]) if re.search(r'\s', what) and not os.path.exists(what) else None
    return found is not None and found.signature is not None


def _summarize_codes() -> Dict[str, str]:
    """Return the summaries of all codes as {code: summary}, sorted."""
    from mmguard.findings.plugins import list_rules
    from mmguard.findings.signatures import read_signatures

    errors = {signature.code: signature.title for signature in read_signatures()}
    return dict(sorted({**{rule.code: rule.summary for rule in list_rules()}, **errors}.items()))


def _explain_code(what: str) -> int:
    from mmguard.commands.explain.render import format_signature
    from mmguard.findings.catalogue import RETIRED, describe, find_rule
    from mmguard.findings.plugins import RefusedRule
    from mmguard.findings.signatures import read_signatures

    code = what.upper()
    signed = [signature for signature in read_signatures() if signature.code == code]
    if signed:
        print(format_signature(signed[0]))
        return CLEAN
    if code in RETIRED:
        print(translate('{code} is retired: mmguard no longer reports this code.', code=code))
        return CLEAN
    if not _CODE.fullmatch(what):
        raise CannotRun(f'{what}: not a file, a folder, a code such as MG102, or a known error message')
    try:
        rule = find_rule(code)
    except LookupError:
        raise CannotRun(f'no such code: {what}. Known: {", ".join(_summarize_codes())}') from None
    if issubclass(rule, RefusedRule):
        raise CannotRun(rule.summary)
    if code != rule.code:
        print(translate('{code} is now {new}.', code=code, new=rule.code), end='\n\n')
    print(describe(rule))
    return CLEAN


def _explain_log(args: argparse.Namespace, what: str) -> int:
    from mmguard.commands.outputs import write_json
    from mmguard.commands.spinner import Spinner
    from mmguard.text import visible

    out = sys.stderr if args.json == '-' else sys.stdout
    # No spinner if the log is typed or pasted on the same terminal.
    with nullcontext() if what == '-' else Spinner('explain', visible_name(what)):
        from mmguard.commands.explain.render import as_json
        from mmguard.formats.options import ScanOptions

        pieces, name, config = _open_log(what)
        given = dict(framework=args.framework, run_code=args.run_code)
        options = ScanOptions(args.num_classes, args.ignore_index, args.reduce_zero_label, **given)
        log, found, findings, problems = explain_pieces(pieces, name, args.config, args.data, options)
    for problem in problems:
        print(visible(f'note: {problem}'), file=out)
    if args.json is not None:
        write_json(args.json, as_json(found, name, findings))
    is_wrong = any(finding.severity == 'error' for finding in findings) if found is None else not found.is_open
    if args.json != '-':
        width = min(shutil.get_terminal_size().columns, 110)
        print(describe(log, found, findings, name, args.config or config, args.data, options, width, args.verbose))
        if found is not None and config is not None and not args.config and not args.data:
            hint = translate(
                'Found the config {config} next to the log. To check the causes against it and its labels, add '
                '`--config {config}` (a config in Python is executed).',
                config=shlex.quote(config),
            )
            print(f'\n{hint}')
    return FOUND if is_wrong else CLEAN


def explain_pieces(
    pieces: Iterable[bytes], name: str, config: Optional[str], data: Optional[str], options: ScanOptions
) -> Tuple[Reader, Optional[Explanation], Tuple[Finding, ...], List[str]]:
    """Return the log, its explanation (``None`` without an error), findings in config and labels, and failed reads."""
    from mmguard.commands.explain.explanation import explain
    from mmguard.commands.explain.facts import collect_findings
    from mmguard.commands.explain.reader import Reader

    log = Reader().read(pieces)
    names = [text for text in (name, config, data) if text]
    found = explain(log, names=names)
    if not (config or data):
        return log, found, (), []
    known, problems = collect_findings(config, data, options, found, log.classes.missing)
    return log, explain(log, known, names), known.findings, problems


def describe_no_error(log: Reader, name: str, findings: Sequence[Finding] = (), width: int = 100) -> str:
    """Describe a log without an error: the findings in config and labels, and the signs that were searched for."""
    from mmguard.commands.explain.render import build_found_rows
    from mmguard.commands.explain.scores import NAN_IN_SOME_EPOCHS_NOTE
    from mmguard.text import lay_out, quantity

    lines = quantity(log.lines, 'line')
    rows = [
        *build_found_rows(findings),
        Message('{name}: {lines} without an error that ended a training', name=name, lines=lines),
    ]
    rows.append(Message('if training crashed, pass the whole traceback. Searched for: {signs}', signs=_list_signs()))
    if not log.scores.values:
        rows.append(Message('no validation score was recognized in the log: check the scores yourself'))
    if log.classes.summary:
        note = f'. {NAN_IN_SOME_EPOCHS_NOTE}' if log.classes.is_on_patches else ''
        rows.append(f'note: {log.classes.summary}{note}')
    for number, line in list(log.facts.find_kind('unlabeled'))[:1]:
        rows.append(f'note: line {number:,}: {line[-_LONGEST:]}\n{_UNLABELED_QUESTION}')
    return lay_out(rows, max(width, 40))


def describe(
    log: Reader,
    found: Optional[Explanation],
    findings: Sequence[Finding],
    name: str,
    config: Optional[str],
    data: Optional[str],
    options: ScanOptions,
    width: int = 100,
    verbose: bool = False,
) -> str:
    """Return the output of the command: the explanation, or if no error was found, the signs that were searched for."""
    from mmguard.commands.explain.render import as_text

    if found is None:
        return describe_no_error(log, name, findings, width)
    scan = shlex.join(['mmguard', 'scan', data, *options.build_arguments()]) if data else ''
    return as_text(found, name, config, width, verbose, scan)


def _list_signs() -> str:
    from mmguard.findings.signatures import SIGN, read_signatures

    signs = [one for one in read_signatures() if one.stage >= SIGN or one.code in ('MG442', 'MG400')]
    return '; '.join(f'{one.code} {translate(one.title).rstrip(".。")}' for one in signs)


def open_log_or_text(log: str) -> Tuple[Iterable[bytes], str]:
    """Return a log, a run folder or a text of several lines as pieces of bytes, and the name of this input."""
    if '\n' in log:
        return [log.encode('utf-8', 'surrogateescape')], 'text'
    if not os.path.exists(log):
        raise CannotRun(
            f'{shorten(log)}: no such file or folder. To explain a pasted error, pass a text of several lines'
        )
    return _open_log(log)[:2]


def _open_log(what: str) -> Tuple[Iterator[bytes], str, Optional[str]]:
    """Return a log in pieces, its name, and the path of the config next to the log in a run folder, else ``None``."""
    from mmguard.commands.explain.reader import find_config, find_logs, read_pieces

    if what == '-':
        return read_pieces(what), 'standard input', None
    if _is_message(what):
        return iter([what.encode('utf-8', 'surrogateescape')]), 'text', None
    path = Path(what)
    paths: List[Path] = find_logs(path) if path.is_dir() else [path]
    folder = paths[-1].parent
    config = find_config(folder) if path.is_dir() else None
    # A truncated file may end in the middle of a line.
    between = [b'\n'] if len(paths) > 1 else []
    pieces = itertools.chain.from_iterable(itertools.chain(read_pieces(str(one)), between) for one in paths)
    name = visible_name(str(paths[0] if len(paths) == 1 else folder))
    return pieces, name, visible_name(str(config)) if config else None
