"""Command ``mmguard check``, which finds settings of a config that do not fit the labels."""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any, Dict, List, Sequence, Tuple, Type

from mmguard.commands import COULD_NOT_RUN
from mmguard.commands.arguments import NO_VERIFY, RUN_CODE, VERBOSE, add_arguments
from mmguard.commands.selection import RuleSelection, add_selection, read_selection
from mmguard.errors import CannotRun, collect_failures
from mmguard.language import Message, as_message, join, translate
from mmguard.text import quantity, visible
from mmguard.version import __version__

if TYPE_CHECKING:
    from mmguard.commands.machine_formats import ReportEntry
    from mmguard.config.read import ReadConfig
    from mmguard.findings.finding import Finding
    from mmguard.findings.rule import Rule

#: Maximum width of the output, in columns.
_WIDTH = 100


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        'check',
        help='check a config before training: find settings that do not fit the labels, and say what to write',
        description='Checks whether heads, losses, data sets, pipelines and metrics of a config of MMSegmentation or '
        'MMDetection fit the labels. Reads no data. Only the parts that an offered edit changes (data sets, model, '
        'losses) are built and called, before and after the edit, in a process without network, for at most 20 s. '
        'A CONFIG in Python is executed. Exit code: 0 nothing found, 1 findings, 2 could not run. '
        '`mmguard explain CODE` says more about a finding.',
    )
    add_arguments(parser, 'configs CONFIG  a file, or a shipped config: mmseg::pidnet/NAME.py', configs=dict(nargs='+'))
    add_selection(parser)
    text = '--json FILE  write the findings as JSON (-: to standard output); for one CONFIG only\n'
    add_arguments(parser, text + RUN_CODE + NO_VERIFY + VERBOSE)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from mmguard.commands.outputs import write_json
    from mmguard.commands.spinner import Spinner

    selection = read_selection(args)
    if args.json is not None and len(args.configs) > 1:
        raise CannotRun(
            f'JSON is written for one config, got {len(args.configs)}: name one, or choose another --format'
        )
    found: List[Tuple[ReadConfig, List[Finding]]] = []
    failed: List[str] = []
    with Spinner('check', args.configs[0]) as spinner, collect_failures() as failures:
        import mmengine  # noqa: F401  if it is missing, the command line says how to install it

        rules = select_config_rules(selection)
        for file in args.configs:
            spinner.text = file
            try:
                found.append(check_config(file, rules, args.run_code, not args.no_verify))
            except CannotRun as error:
                if len(args.configs) == 1:
                    raise
                failed.append(f'{file}: {error}')
    failed += selection.choose_failures(failures)
    width = min(shutil.get_terminal_size((_WIDTH, 24)).columns, _WIDTH)
    people = sys.stdout if selection.for_people else sys.stderr
    entries: List[ReportEntry] = []
    severities: List[str] = []
    for config, findings in found:
        shown, hidden, notes = selection.split(findings)
        config.notes += notes
        entries += selection.build_entries(config.file, shown, hidden)
        severities += [finding.severity for finding in shown]
        print(visible(as_text(config, shown, len(rules), args.verbose, width)), file=people)
        if args.json is not None:
            record = as_json(config, shown, [rule.code for rule in rules], failed)
            write_json(args.json, {**record, 'hidden': [finding.code for finding in hidden]})
    for failure in failed:
        print(visible(translate('could not run: {failure}', failure=failure)), file=people)
    selection.write('check', ' '.join(args.configs), entries, failed)
    return COULD_NOT_RUN if failed else selection.choose_exit_code(severities)


def select_config_rules(selection: RuleSelection) -> List[Type[Rule]]:
    """Return the selected rules that check configs."""
    return [rule for rule in selection.select_rules() if 'config' in rule.looks_at]


def check_config(
    file: str, rules: Sequence[Type[Rule]], run_code: bool, verify: bool
) -> Tuple[ReadConfig, List[Finding]]:
    """Return a config and its findings: those of ``rules``, with verified edits, then those of all other rules."""
    from mmguard.config.other_styles import is_detr_yaml, read_with_includes
    from mmguard.config.read import ReadConfig, read_config
    from mmguard.findings.engine import diagnose, verify_edits
    from mmguard.findings.messages import number_edits
    from mmguard.properties.builder import open_verifier

    with redirect_stdout(sys.stderr):  # configs and frameworks print; standard output may be for JSON
        config = ReadConfig(read_with_includes(file), file) if is_detr_yaml(file) else read_config(file, run_code)
        findings = number_edits(diagnose(config=config, rules=select_config_rules(RuleSelection())))
        shown = [finding for finding in findings if finding.code in {rule.code for rule in rules}]
        with open_verifier(config, run_code, verify) as verifier:
            return config, verify_edits(shown, config, verifier) + [one for one in findings if one not in shown]


def as_text(config: ReadConfig, findings: List[Finding], rules: int, verbose: bool = False, width: int = _WIDTH) -> str:
    """Return the output of the command: the findings, notes, a hint, and at the end the number of findings."""
    from mmguard.findings.finding import SEVERITIES
    from mmguard.findings.messages import apply_hint, format_findings

    parts = [format_findings(findings, width, verbose)] if findings else []
    parts += [translate('note: {note}', note=as_message(note)) for note in config.notes]
    hint = apply_hint(config.file, findings)
    parts += [hint] if hint else []
    numbers = {severity: sum(finding.severity == severity for finding in findings) for severity in SEVERITIES}
    total = join(', ', (quantity(number, severity) for severity, number in numbers.items() if number))
    clean = Message(
        'nothing found by {rules}. To read the labels, run `mmguard scan {file}`. '
        'To test the training, run `mmguard dry-run {file}`',
        rules=quantity(rules, 'rule'),
        file=shlex.quote(config.file),
    )
    parts.append(translate('{file}: {total}', file=config.file, total=total or clean))
    return '\n\n'.join(parts)


def as_json(
    config: ReadConfig, findings: List[Finding], codes: List[str], failed: Sequence[str] = ()
) -> Dict[str, Any]:
    """Return the findings as plain data for ``--json``."""
    from mmguard.findings.messages import unpack

    return {
        'mmguard': __version__,
        'config': config.file,
        'framework': config.scope,
        'rules': codes,
        'notes': config.notes,
        'findings': [unpack(finding) for finding in findings],
        'failed': list(failed),
    }
