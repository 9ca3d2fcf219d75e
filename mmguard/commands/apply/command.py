"""Command ``mmguard apply``, which checks its arguments and writes a config with guards or edits."""

from __future__ import annotations

import argparse
import os
import shlex
import warnings
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, Sequence

from mmguard.commands import CLEAN
from mmguard.commands.arguments import NO_VERIFY, RUN_CODE, add_arguments
from mmguard.commands.scan.command import add_labels, add_reading, add_split, build_options
from mmguard.config.recognition import check_bases
from mmguard.errors import CannotRun
from mmguard.files.regular import NOT_REGULAR_FAULT, read_regular, write_whole
from mmguard.text import visible_name
from mmguard.version import __version__

if TYPE_CHECKING:
    from mmguard.formats.options import ScanOptions

#: Parts of the first line of the written config; ``{}`` is replaced by the codes of the edits.
_GONE = 'with the edits for {}'
_GUARDED = 'guarded against invalid labels'

_ARGUMENTS = """\
config CONFIG  a file, or a shipped config: mmseg::pidnet/NAME.py
-o, --out OUT  the file to write; its name must end with .py
--edit, --edits N  instead of guards, write edit [N] of `mmguard check CONFIG`, or all edits that need no answer
  (N = safe); can be repeated
--scan  take the edits N from `mmguard scan CONFIG` instead of `mmguard check CONFIG`
"""
_WRITING = """\
--guard  with --edit: add the guards, too
--force  overwrite OUT if it exists and differs
"""


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        'apply',
        help='write a config with guards (in pipelines, losses and hooks), or with edits of check or scan',
        description='Writes a config that inherits from CONFIG. It adds mmguard to custom_imports, LabelGuardHook to '
        'custom_hooks, and GuardSegLabels or GuardInstanceLabels to every pipeline. Losses become guarded losses, and '
        'assigners exclude ignored instances. CONFIG itself is never changed; guards in it are kept. With --edit, '
        'numbered edits of `mmguard check` (or `scan`) are written in place of guards, and the result is checked. The '
        'changed parts (data sets, model, losses) are built and called before and after the change, in a process '
        'without network, for at most 20 s. A CONFIG in Python is executed.',
    )
    repeated = dict(action='append', default=[])
    add_arguments(parser, _ARGUMENTS, out=dict(type=Path, required=True), edits=repeated)
    scanned = parser.add_argument_group(
        'options of `mmguard scan`', 'With --scan, repeat the options of the scan, so that edits have the same numbers.'
    )
    add_split(scanned)
    add_labels(scanned)
    add_reading(scanned)
    add_arguments(parser, RUN_CODE + NO_VERIFY + _WRITING)
    parser.set_defaults(run=run, interrupted='mmguard apply: interrupted; nothing was written')


def run(args: argparse.Namespace) -> int:
    if (args.scan or args.guard) and not args.edit:
        raise CannotRun('--scan and --guard need --edit N')
    options = build_options(args)
    said = replace(options, run_code=False).build_arguments()
    if said and not args.scan:
        raise CannotRun(f'{shlex.join(said)}: options of `mmguard scan` are allowed only with --scan')
    scanned = options if args.scan else None
    guard = args.guard or not args.edit
    return apply(args.config, args.out, args.force, args.edit, scanned, guard, args.run_code, not args.no_verify)


def apply(
    source: str,
    out: Path,
    force: bool = False,
    edits: Sequence[str] = (),
    scanned: Optional[ScanOptions] = None,
    guard: bool = True,
    run_code: bool = False,
    verify: bool = False,
) -> int:
    """Write a config with the numbered ``edits`` and, if ``guard`` is true, with guards; return the exit code.

    If ``verify`` is true, edits and guards that make the config fail are not written. The numbers are from a scan with
    the options ``scanned``, or from a check if ``scanned`` is ``None``; ``'safe'`` means all edits that need no answer.
    """
    from mmguard.commands.spinner import Spinner

    with ExitStack() as stack:
        stack.enter_context(Spinner('apply', source))
        import mmengine  # noqa: F401  where it is missing, the command line says how to install it

        from mmguard.commands.apply.guarded import EditedTree
        from mmguard.commands.apply.output import build_config_text, describe_form, load, show_changes
        from mmguard.config.guards import GuardedTree, guard_tree
        from mmguard.config.read import ReadConfig, check_may_build, import_scope
        from mmguard.config.tree import describe_wrong_types, name_types
        from mmguard.properties.builder import BROKEN, Verification, open_verifier

        warnings.filterwarnings('ignore', message='pkg_resources')  # mmengine's, at every import
        _check_places(source, out)
        tree = load(source, run_code)
        check_may_build(source, run_code)  # it first says if the file is not a config
        if tree.get('model') is None:
            raise CannotRun(f'{source} has no `model`: give the config that you train with, not a part of it')
        import_scope(tree)
        verifier = stack.enter_context(open_verifier(ReadConfig(name_types(tree), source), run_code, verify))

        def verify_written(before: ReadConfig, after: ReadConfig) -> Verification:
            guarded = guard and not after.wrong_types
            return verifier(before, ReadConfig(guard_tree(after.written).tree) if guarded else after)

        edited = EditedTree(tree, [], [], [])
        if edits:  # only these need the rules
            from mmguard.commands.apply.edits import edit_tree

            edited = edit_tree(source, tree, edits, verify_written, scanned, run_code)
        wrong_types = ReadConfig(name_types(edited.tree)).wrong_types
        if wrong_types:
            raise CannotRun(f'{source}: {describe_wrong_types(wrong_types)}. See `mmguard check {source}`')
        guarded = guard_tree(edited.tree) if guard else GuardedTree(edited.tree, [], [])
        verdicts = list(edited.verdicts)
        if guarded.changed and not edits:
            verdicts = [verifier(ReadConfig(name_types(tree), source), ReadConfig(name_types(guarded.tree), source))]
            if verdicts[0].state == BROKEN:
                raise CannotRun(
                    f'the guarded config fails: {verdicts[0].reason}. Nothing was written; --no-verify writes it anyway'
                )
    changed = [*edited.changed, *guarded.changed]
    if edits and not changed:
        raise CannotRun(f'{source}: no safe edit is available (others need your answer); nothing was written')
    what = ' and '.join(
        filter(None, (_GONE.format(', '.join(edited.codes)) if edits else '', _GUARDED if guard else ''))
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    text = build_config_text(source, tree, guarded.tree, out, __version__, what)
    before = read_regular(out).decode() if out.exists() else None
    if before not in (None, text) and not force:
        raise CannotRun(f'{out} exists with other content: give another -o, or --force to overwrite it')
    show_changes(source, changed, [*edited.left, *guarded.left])
    if before == text:
        print(visible_name(f'unchanged: {out}'))
    else:
        write_whole(out, text.encode('utf-8'))
        print(visible_name(f'written: {out} ({describe_form(text)})'))
    if edits:
        print(_check_again(out, scanned))
    if verdicts:
        print(_describe_verdicts(verdicts))
    return CLEAN


def _describe_verdicts(verdicts: Sequence[Any]) -> str:
    """Return ``'verified: ...'`` with the parts that were built and called, or ``'not verified: ...'`` and a reason."""
    doubts = [verdict.reason for verdict in verdicts if verdict.state != 'verified']
    parts = dict.fromkeys(part for verdict in verdicts for part in verdict.parts)
    return f'not verified: {doubts[0]}' if doubts else f'verified: these still build and run: {", ".join(parts)}'


def _check_again(out: Path, scanned: Optional[ScanOptions]) -> str:
    """Return a line with the codes of findings in the written config, and in its labels if ``scanned`` is given."""
    from mmguard.config.read import read_config
    from mmguard.findings.engine import diagnose
    from mmguard.text import quantity

    if scanned is not None:
        from mmguard.commands.fix.edits import list_findings
        from mmguard.scanning.plans import plan_target

        left = list_findings(plan_target(str(out), scanned))
    else:
        left = diagnose(config=read_config(str(out)))
    found = ', '.join(dict.fromkeys(finding.code for finding in left))
    return f'checked again: {quantity(len(left), "finding")} left ({found})' if left else 'checked again: nothing found'


def _check_places(source: str, out: Path) -> None:
    if out.suffix != '.py':
        raise CannotRun(f'{out}: a config that inherits is written in Python, so its name must end with .py')
    if '::' not in source:
        if not Path(source).is_file():
            raise CannotRun(
                f'{source}: no such file. A config that ships with a framework is given as mmseg::pidnet/NAME.py'
            )
        if out.exists() and out.samefile(source):
            raise CannotRun(f'{out} is CONFIG itself, which is never overwritten: give another -o')
        if out.exists() and any(map(out.samefile, check_bases(source))):
            raise CannotRun(f'{out} is a base of CONFIG, and is never overwritten: give another -o')
    if os.path.lexists(out) and (out.is_symlink() or not out.is_file()):
        raise CannotRun(f'{out} {NOT_REGULAR_FAULT}: give another -o')
