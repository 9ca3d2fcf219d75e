from __future__ import annotations

from typing import Iterator

from mmguard.config.own_parts import LABEL_HOOK, hooks, own_losses, own_transforms
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
        guards = [*own_transforms(config), *own_losses(config)]
        hook = next((one for one in hooks(config) if one.name == LABEL_HOOK), None)
        if guards and hook is None:
            held = config.data.get('custom_hooks') or []
            yield self.at(
                'custom_hooks',
                [one.get('type') for one in held if isinstance(one, dict)],
                f'{guards[0].name} at {guards[0].path} is not reported on: there is no {LABEL_HOOK}.',
                edits=[
                    Edit(
                        f'Add dict(type={LABEL_HOOK!r}) to custom_hooks.',
                        SAFE,
                        '',
                        (('custom_hooks', [*held, {'type': LABEL_HOOK}]),),
                    )
                ],
            )
        elif hook is not None and not guards and not hook.config.get('guard') and config.part('train_dataloader'):
            yield self.at(
                hook.path,
                hook.config,
                f'{LABEL_HOOK} has nothing to report: no pipeline holds a guard, and no loss is guarded.',
                edits=[Edit('Write guard=True in it.', SAFE, '', ((hook.at('guard'), True),))],
            )
