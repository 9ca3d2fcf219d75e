from __future__ import annotations

from typing import Any, Dict, Iterator, List

from mmguard.config.bases import bases_of
from mmguard.config.classes import name_of
from mmguard.config.own_parts import HOOKS
from mmguard.config.read import ReadConfig, read_config
from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import ConfigRule


class BaseHooksReplaced(ConfigRule):
    """A list of hooks that replaces that of the base config, in silence."""

    code = 'MG253'
    summary = 'custom_hooks replaces the hooks of the base config, where a hook of mmguard was meant to be added.'
    why = (
        'A list of a config replaces the list of its base. EMAHook or PipelineSwitchHook of the base then vanish '
        'without a word, and the training is another one.'
    )
    advice = "Write custom_hooks=[*_base_.custom_hooks, dict(type='LabelGuardHook')]."
    severity = WARNING

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        held = [hook for hook in config.data.get('custom_hooks') or [] if isinstance(hook, dict)]
        names = [name_of(hook.get('type')) for hook in held]
        if not set(names) & set(HOOKS):
            return
        gone = [hook for hook in _base_hooks(config.file) if name_of(hook.get('type')) not in names]
        if gone:
            missing = ', '.join(name_of(hook['type']) for hook in gone)
            yield self.at(
                'custom_hooks',
                names,
                f'custom_hooks replaces the list of the base config: {missing} will not run.',
                edits=[
                    Edit(
                        f'Keep {missing}.',
                        ASKS,
                        f'Shall {missing} run, as in the base?',
                        (('custom_hooks', [*gone, *held]),),
                    )
                ],
            )


def _base_hooks(file: str) -> List[Dict[str, Any]]:
    """Return the hooks of the bases that a config names."""
    found: List[Dict[str, Any]] = []
    for base in bases_of(file):
        try:
            hooks = read_config(base).data.get('custom_hooks')
        except Exception:  # it cannot be read by itself
            continue
        found += [hook for hook in hooks or [] if isinstance(hook, dict) and 'type' in hook]
    return found
