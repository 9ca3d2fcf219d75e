"""Installation commands and their effects, used by edits of the environment."""

from __future__ import annotations

from typing import Tuple

from mmguard.compat.stack import INSTALL, ONEDL, OPENMMLAB, STACKS, find_stacks
from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.environment import EnvironmentFacts, version_key

#: Version chosen by pip without limits: newer than any other.
NEWEST = '99'


def find_installer(distribution: str) -> str:
    """Return the installer of a distribution; mim finds OpenMMLab's wheels of mmcv."""
    return 'mim install' if distribution in ('mmcv', 'mmcv-full') else 'pip install'


def mmcv_limits(environment: EnvironmentFacts) -> Tuple[str, str]:
    """Return the mmcv versions that all frameworks accept, as (low, high); empty: no limit."""
    lows = [low for low, _ in environment.accepts.values() if low]
    highs = [high for _, high in environment.accepts.values() if high]
    return max(lows, key=version_key, default=''), min(highs, key=version_key, default='')


def describe_limits(limits: Tuple[str, str]) -> str:
    """Describe version limits: ``'from 2.0.0rc4 up to, not including, 2.2.0'``."""
    low, high = limits
    return ' '.join([f'from {low}'] * bool(low) + [f'up to, not including, {high}'] * bool(high))


def find_command(module: str, stack: str, environment: EnvironmentFacts) -> Tuple[str, Tuple[str, str]]:
    """Return the command that installs a module, and the packages that it installs; for mmcv, the newest accepted
    version."""
    name = STACKS[stack][module][0]
    low, high = mmcv_limits(environment) if module == 'mmcv' else ('', '')
    if not (low or high):
        return INSTALL[stack][module], (name, NEWEST)
    limits = ','.join([f'>={low}'] * bool(low) + [f'<{high}'] * bool(high))
    # The last version before the limit, whatever its number.
    return f'{find_installer(name)} "{name}{limits}"', (name, f'{high}dev0' if high else NEWEST)


def reinstall_mmcv(environment: EnvironmentFacts) -> Edit:
    """Reinstall mmcv in a version that all frameworks accept, from the installed stack."""
    fork = list(find_stacks(environment.versions)) == [ONEDL]
    command, becomes = find_command('mmcv', ONEDL if fork else OPENMMLAB, environment)
    if fork:  # for the installed torch, without replacing it
        command = command.replace('pip install', 'pip install --no-build-isolation')
    installed = list(environment.find_installed('mmcv')) or [becomes[0]]
    return Edit(
        'Reinstall mmcv.',
        SAFE,
        environment=(*((one, None) for one in installed), becomes),
        commands=(f'pip uninstall -y {" ".join(installed)}', command),
    )
