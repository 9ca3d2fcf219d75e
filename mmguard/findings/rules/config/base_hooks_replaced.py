from __future__ import annotations

from typing import Any, Dict, Iterator, List

from mmguard.config.classes import name_of
from mmguard.config.guards import HOOKS
from mmguard.config.read import ReadConfig, load_config
from mmguard.config.recognized import bases_of
from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.findings.usual_edits import as_code, propose


class BaseHooksReplaced(ConfigRule):
    """A list of hooks that silently replaces that of the base config."""

    code = 'MG253'
    summary = 'custom_hooks replaces the hooks of the base config, where a hook of mmguard was meant to be added.'
    title = 'custom_hooks replaces the list of the base config: {missing} will not run.'
    why = (
        'A list of a config replaces the list of its base. EMAHook or PipelineSwitchHook of the base then vanish '
        'silently, and the training changes.'
    )
    example = Example(
        wrong="custom_hooks = [dict(type='LabelGuardHook')]",
        right="custom_hooks = [*_base_.custom_hooks, dict(type='LabelGuardHook')]",
    )
    limits = 'It is looked for only where custom_hooks holds a hook of mmguard, and the base config can be read.'
    advice = (
        'Read custom_hooks of the base config. The hooks that are to run come first in your list, as '
        '[*_base_.custom_hooks, ...]; if they were left out on purpose, nothing is to be done.'
    )
    severity = WARNING

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        held = _hooks_of(config)
        names = [name_of(hook['type']) for hook in held]
        if not set(names) & set(HOOKS):
            return
        of_bases = [hook for base in bases_of(config.file) for hook in _base_hooks(base)]
        gone = [hook for hook in of_bases if name_of(hook['type']) not in names]
        if gone:
            missing = ', '.join(name_of(hook['type']) for hook in gone)
            title, question = 'Keep the hooks of the base config.', f'Shall {missing} run, as in the base config?'
            lines = (f'custom_hooks = [{", ".join(map(as_code, [*gone, *held]))}]',)
            edit = propose(title, ('custom_hooks', [*gone, *held]), question=question, lines=lines)
            yield self.report_at('custom_hooks', names, dict(missing=missing), edits=[edit])


def _hooks_of(config: ReadConfig) -> List[Dict[str, Any]]:
    return [hook for hook in config.data.get('custom_hooks') or [] if isinstance(hook, dict) and 'type' in hook]


def _base_hooks(file: str) -> List[Dict[str, Any]]:
    try:
        return _hooks_of(ReadConfig(load_config(file, import_custom_modules=False).to_dict()))
    except Exception:  # it cannot be read by itself
        return []
