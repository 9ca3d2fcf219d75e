"""``mmguard check``."""

from __future__ import annotations

import argparse
import sys
from contextlib import redirect_stdout
from typing import Any, List

from mmguard.errors import CannotRun
from mmguard.text.visible import visible
from mmguard.tools.arguments import add_no_verify, add_run_code, add_verbose
from mmguard.tools.exit_codes import CLEAN, FOUND


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
    """Codes with commas between them."""
    return [code.strip().upper() for code in text.split(',') if code.strip()]


def run(args: argparse.Namespace) -> int:
    import mmengine  # noqa: F401  where it is missing, the command line says how to install it

    from mmguard.config.detr_yaml import is_detr_yaml, with_includes
    from mmguard.config.read import ReadConfig, read_config
    from mmguard.findings.engine import chosen_rules, diagnose, verify_edits
    from mmguard.findings.wording import numbered
    from mmguard.properties.builder import verifier_of
    from mmguard.tools.check.render import as_json, as_text
    from mmguard.tools.outputs import write_json

    try:
        chosen = chosen_rules(args.select, args.ignore, args.everything)
    except ValueError as error:
        raise CannotRun(str(error)) from error
    rules = [rule for rule in chosen if 'config' in rule.looks_at]
    with redirect_stdout(sys.stderr):  # configs and frameworks print; standard output may be for JSON
        if is_detr_yaml(args.config):
            config = ReadConfig(with_includes(args.config), args.config)
        else:
            config = read_config(args.config, args.run_code)
        findings = numbered(diagnose(config=config, rules=rules))
        with verifier_of(config, args.run_code, not args.no_verify) as (verifier, doubt):
            findings = verify_edits(findings, config, verifier, doubt)
    record = as_json(config, findings, [rule.code for rule in rules])
    if args.json != '-':
        print(visible(as_text(config, findings, len(rules), args.verbose)))
    if args.json is not None:
        write_json(args.json, record)
    return FOUND if findings else CLEAN
