"""``mmguard check``."""

from __future__ import annotations

import argparse
import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any, Dict, List

from mmguard.errors import CannotRun
from mmguard.text import quantity, visible
from mmguard.tools.arguments import add_no_verify, add_run_code, add_verbose
from mmguard.tools.exit_codes import CLEAN, FOUND
from mmguard.version import __version__

if TYPE_CHECKING:
    from mmguard.config.read import ReadConfig
    from mmguard.findings.finding import Finding


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        'check',
        help='check a config before training: say what is wrong with its labels, and what to write',
        description='Checks a config of MMSegmentation or MMDetection by rules about labels: heads, losses, data '
        "sets, pipelines, metrics. Builds mmguard's own lines only, and reads no data, unless it has an edit to offer: "
        'what that touches (data sets, model, losses) is built and called before and after it, in a process without '
        'network, for at most 20 s. CONFIG in Python is a program, and is run. Exit code: 0 nothing found, 1 findings, '
        '2 could not run. `mmguard explain CODE` says more about a finding.',
    )
    parser.add_argument('config', metavar='CONFIG', help='a file, or a shipped one as mmseg::pidnet/NAME.py')
    parser.add_argument(
        '--select', type=codes, default=[], metavar='CODES', help='only these rules, e.g. MG201,MG214 (or MG21)'
    )
    parser.add_argument('--ignore', type=codes, default=[], metavar='CODES', help='all but these rules')
    parser.add_argument(
        '--all',
        action='store_true',
        dest='everything',
        help='also what matters only where labels are invalid: unguarded losses, heads and samplers',
    )
    parser.add_argument('--json', metavar='FILE', help='write the findings as JSON (-: to standard output)')
    add_run_code(parser)
    add_no_verify(parser)
    add_verbose(parser)
    parser.set_defaults(run=run)


def codes(text: str) -> List[str]:
    """Parse codes separated by commas."""
    return [code.strip().upper() for code in text.split(',') if code.strip()]


def run(args: argparse.Namespace) -> int:
    import mmengine  # noqa: F401  if it is missing, the command line says how to install it

    from mmguard.config.detr_yaml import is_detr_yaml, read_with_includes
    from mmguard.config.read import ReadConfig, read_config
    from mmguard.findings.engine import chosen_rules, diagnose, verify_edits
    from mmguard.findings.wording import number_edits
    from mmguard.properties.builder import verifier_of
    from mmguard.tools.outputs import write_json

    try:
        chosen = chosen_rules(args.select, args.ignore, args.everything)
    except ValueError as error:
        raise CannotRun(str(error)) from error
    rules = [rule for rule in chosen if 'config' in rule.looks_at]
    with redirect_stdout(sys.stderr):  # configs and frameworks print; standard output may be for JSON
        if is_detr_yaml(args.config):
            config = ReadConfig(read_with_includes(args.config), args.config)
        else:
            config = read_config(args.config, args.run_code)
        findings = number_edits(diagnose(config=config, rules=rules))
        with verifier_of(config, args.run_code, not args.no_verify) as verifier:
            findings = verify_edits(findings, config, verifier)
    record = _as_json(config, findings, [rule.code for rule in rules])
    if args.json != '-':
        print(visible(_as_text(config, findings, len(rules), args.verbose)))
    if args.json is not None:
        write_json(args.json, record)
    return FOUND if findings else CLEAN


def _as_text(config: ReadConfig, findings: List[Finding], rules: int, verbose: bool = False) -> str:
    """Return the findings as text, each with its places, its value and the correction, and the total at the end."""
    from mmguard.findings.finding import SEVERITIES
    from mmguard.findings.wording import apply_hint, findings_text

    parts = [findings_text(findings, verbose=verbose)] if findings else []
    parts += [f'note: {note}' for note in config.notes]
    hint = apply_hint(config.file, findings)
    parts += [hint] if hint else []
    numbers = {severity: sum(finding.severity == severity for finding in findings) for severity in SEVERITIES}
    total = ', '.join(quantity(number, severity) for severity, number in numbers.items() if number)
    clean = f'nothing found by {quantity(rules, "rule")}. Labels not read: `mmguard scan {config.file}`'
    parts.append(f'{config.file}: {total or clean}')
    return '\n\n'.join(parts)


def _as_json(config: ReadConfig, findings: List[Finding], codes: List[str]) -> Dict[str, Any]:
    """Return the findings as plain data for programs."""
    from mmguard.findings.wording import unpack

    return {
        'mmguard': __version__,
        'config': config.file,
        'framework': config.scope,
        'rules': codes,
        'notes': config.notes,
        'findings': [unpack(finding) for finding in findings],
    }
