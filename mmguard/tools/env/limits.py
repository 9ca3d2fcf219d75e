"""Which versions of mmcv a framework accepts."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path
from typing import Optional, Tuple

from mmguard.compat.stack import distributions_of

#: From, and below; empty: no limit.
Limits = Tuple[str, str]


def accepted_mmcv(folder: Optional[Path]) -> Optional[Limits]:
    """What a framework checks when it is imported, as its ``__init__.py`` says."""
    try:
        text = '' if folder is None else (folder / '__init__.py').read_text(encoding='utf-8', errors='replace')
    except OSError:
        return None
    low = re.search(r"^(?:MMCV_MIN|mmcv_minimum_version)\s*=\s*'([^']+)'", text, re.MULTILINE)
    high = re.search(r"^(?:MMCV_MAX|mmcv_maximum_version)\s*=\s*'([^']+)'", text, re.MULTILINE)
    return (low.group(1), high.group(1)) if low and high else None


def declared_mmcv(module: str) -> Optional[Limits]:
    """What the metadata of its distribution say: onedl's frameworks check nothing when they are imported."""
    for name in distributions_of(module):
        try:
            requirements = metadata.requires(name) or []
        except Exception:  # missing, or metadata that is broken
            continue
        for requirement in requirements:
            limits = limits_in(requirement)
            if limits is not None:
                return limits
    return None


def limits_in(requirement: str) -> Optional[Limits]:
    """The limits of a requirement, where it is one of mmcv.

    Example:
        >>> limits_in('onedl-mmcv>=2.0.0; extra == "mminstall"')
        ('2.0.0', '')
        >>> limits_in("mmcv <2.2.0,>=2.0.0rc4 ; extra == 'mim'")
        ('2.0.0rc4', '2.2.0')
        >>> limits_in('numpy>=1.20')
    """
    named = re.match(r'[\w.-]*\w', requirement)
    if named is None or named.group() not in distributions_of('mmcv'):
        return None
    limits = dict(re.findall(r'(>=|<)\s*([\w.]+)', requirement.partition(';')[0]))
    return (limits.get('>=', ''), limits.get('<', '')) if limits else None
