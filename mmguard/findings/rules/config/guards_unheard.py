from __future__ import annotations

from typing import Iterator

from mmguard.config.guards import HOOK, add_reporting, guards_in, is_guarded_type
from mmguard.config.label_spaces import from_config
from mmguard.config.parts import hooks, losses, transforms
from mmguard.config.read import ReadConfig
from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.findings.usual_edits import propose


class GuardsUnheard(ConfigRule):
    """Guards without the hook that reports what they do, or the hook without guards."""

    code = 'MG252'
    summary = 'The config has guards and no LabelGuardHook, or the hook and no guard.'
    title = '{guard} at {place} is not reported on: LabelGuardHook is missing.'
    title_hook = 'LabelGuardHook has nothing to report: no pipeline holds a guard, and no loss is guarded.'
    why = (
        'Guards take invalid labels out of the training; only the hook says which file holds them. The hook by itself '
        'guards nothing, unless it is asked to.'
    )
    example = Example(wrong="dict(type='LabelGuardHook')", right="dict(type='LabelGuardHook', guard=True)")
    limits = 'Guards that your own code adds when training starts are not seen.'
    advice = "Write dict(type='LabelGuardHook') in custom_hooks; with guard=True it guards the run by itself."
    severity = WARNING

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        guards = [*guards_in(transforms(config)), *(loss for loss in losses(config) if is_guarded_type(loss.name))]
        hook = next((one for one in hooks(config) if one.name == HOOK), None)
        if guards and hook is None:
            names = [one.get('type') for one in config.data.get('custom_hooks') or [] if isinstance(one, dict)]
            words = dict(guard=guards[0].name, place=guards[0].path)
            edit = propose('Add LabelGuardHook to the hooks.', *add_reporting(config))
            yield self.report_at('custom_hooks', names, words, edits=[edit])
        elif hook is not None and not guards and not hook.config.get('guard') and from_config(config).to_dict():
            edit = propose('Let the hook guard the run.', (hook.at('guard'), True))
            yield self.report_at(hook.path, hook.config, title=self.title_hook, edits=[edit])
