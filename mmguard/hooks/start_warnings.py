"""What is said before the first iteration: the rules of ``mmguard check`` that concern the guards of a run."""

from __future__ import annotations

from typing import Any, List

from mmguard.text.failures import words_of

#: A guard and its head, head and data set, and what is ignored do not agree; a guard meets no labels; evaluation is not
#: guarded; hooks of the base config are replaced.
CODES = ('MG225', 'MG251', 'MG201', 'MG208', 'MG230', 'MG253')


def start_warnings(runner: Any) -> List[str]:
    """Where the guards of a run do not fit its model or its data, one line each with every place to change.

    Args:
        runner (Runner): Its config is read; one that was built from objects alone has none, and nothing is said.
    """
    # What only a start needs; the command line and this hook give one config one opinion.
    from mmguard.config.read import ReadConfig
    from mmguard.findings.engine import chosen_rules, diagnose

    try:
        config = ReadConfig(runner.cfg.to_dict(), runner.cfg.filename or '<config>')
        found = diagnose(config=config, rules=chosen_rules(CODES))
    except Exception as error:  # a config may hold anything, and a warning must not end a training
        return [f'the config could not be checked: {words_of(error)}']
    return [f'{finding.code} {finding.evidence}: {finding.title} {finding.next_step}' for finding in found]
