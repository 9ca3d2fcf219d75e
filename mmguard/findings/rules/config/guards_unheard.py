from __future__ import annotations

from typing import Iterator

from mmguard.config.guards import HOOK, guards_in, is_guarded_type, reported
from mmguard.config.label_spaces import from_config
from mmguard.config.parts import hooks, losses, transforms
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import ConfigRule


class GuardsUnheard(ConfigRule):
    """Guards without the hook that reports what they do, or the hook without guards."""

    code = 'MG252'
    summary = 'The config has guards and no LabelGuardHook, or the hook and no guard.'
    why = (
        'Guards take invalid labels out of the training; only the hook says which file holds them. The hook alone '
        'guards nothing, unless it is asked to.'
    )
    advice = "Write dict(type='LabelGuardHook') in custom_hooks; with guard=True it guards the run by itself."
    severity = WARNING

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        guards = [*guards_in(transforms(config)), *(loss for loss in losses(config) if is_guarded_type(loss.name))]
        hook = next((one for one in hooks(config) if one.name == HOOK), None)
        if guards and hook is None:
            names = [one.get('type') for one in config.data.get('custom_hooks') or [] if isinstance(one, dict)]
            message = f'{guards[0].name} at {guards[0].path} is not reported on: there is no {HOOK}.'
            edit = Edit(f'Add dict(type={HOOK!r}) to custom_hooks.', SAFE, '', reported(config))
            yield self.at('custom_hooks', names, message, edits=[edit])
        elif hook is not None and not guards and not hook.config.get('guard') and from_config(config).by_kind():
            message = f'{HOOK} has nothing to report: no pipeline holds a guard, and no loss is guarded.'
            edit = Edit('Write guard=True in it.', SAFE, '', ((hook.at('guard'), True),))
            yield self.at(hook.path, hook.config, message, edits=[edit])
