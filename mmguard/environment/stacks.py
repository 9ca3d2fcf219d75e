"""The verdict on the stack: OpenMMLab's packages, their onedl forks, a mixture of both, or neither."""

from __future__ import annotations

from typing import Iterator, List

from mmguard.environment.facts import EnvironmentFacts
from mmguard.environment.verdict import ERROR, WARNING, Verdict
from mmguard.stack import STACKS, install_words, stacks_among


def judge_stack(facts: EnvironmentFacts) -> Iterator[Verdict]:
    """Names the stack. Two that write the same folder are an error: the last installed won, file by file."""
    found = stacks_among(facts.versions)
    if not found:
        nnunet = 'nnU-Net' if 'nnunetv2' in facts.versions else 'plain PyTorch'
        yield Verdict('stack', f'{nnunet}, no mmengine')
        return
    named = '; '.join(f'{stack}: {", ".join(names)}' for stack, names in found.items())
    if len(found) == 1:
        yield Verdict('stack', named)
        return
    installed = [name for names in found.values() for name in names]
    twice = [module for module in STACKS[next(iter(STACKS))] if _providers(module, installed) > 1]
    uninstall = f'pip uninstall -y {" ".join(installed)}'
    choose = ', or '.join(f'{_install(stack, facts)} ({stack})' for stack in STACKS)
    if twice:
        why = f'both stacks write the same folder {", ".join(twice)}: of each file, the last installed is there'
        yield Verdict('stack', f'mixed; {named}', ERROR, f'{why}. {uninstall}, then {choose}')
    else:
        why = 'parts of both stacks, which were never tested with each other'
        yield Verdict('stack', f'mixed; {named}', WARNING, f'{why}. {uninstall}, then {choose}')


def _providers(module: str, installed: List[str]) -> int:
    return sum(any(name in installed for name in modules[module]) for modules in STACKS.values())


def _install(stack: str, facts: EnvironmentFacts) -> str:
    """Of the modules that are there, from one stack."""
    return '; '.join(install_words(module, [stack]) for module in STACKS[stack] if module not in facts.missing)


def install_advice(module: str, facts: EnvironmentFacts) -> str:
    """How to install a module from the stack that is there; where none or both are: from either."""
    return install_words(module, list(stacks_among(facts.versions)))
