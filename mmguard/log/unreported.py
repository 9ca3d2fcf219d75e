"""The warning of a guard in a run that has no hook to report what the guard does."""

from __future__ import annotations

import logging
from typing import Any, Set
from weakref import WeakSet

from mmengine.logging import MessageHub, print_log

#: The hooks that report.
_HOOKS: WeakSet[Any] = WeakSet()
#: Names of the runs that were warned.
_WARNED: Set[str] = set()
#: Name of the message hub that mmengine makes where no Runner did.
_NO_RUN = 'mmengine'


def add_reporter(hook: Any) -> None:
    """Note a hook that reports. A Runner builds its hooks after its model and before its data sets."""
    _HOOKS.add(hook)


def warn_unreported(guard: str) -> None:
    """Warn once in a run of mmengine's Runner if no hook reports what a guard does."""
    if _HOOKS:
        return
    run = MessageHub.get_current_instance().instance_name
    if run != _NO_RUN and run not in _WARNED:
        _WARNED.add(run)
        print_log(
            f'guard: {guard} takes out invalid labels, and nothing reports which: this run has no LabelGuardHook. Add '
            f"dict(type='LabelGuardHook') to custom_hooks",
            'current',
            logging.WARNING,
        )
