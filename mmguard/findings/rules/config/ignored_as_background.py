from __future__ import annotations

from typing import Any, Iterator

from mmguard.config.parts import assigners, transforms
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import ConfigRule

#: Assigners that leave ignored regions out without an argument.
ALWAYS = ('CenterRegionAssigner',)


class IgnoredAsBackground(ConfigRule):
    """Ignored instances that the assigner does not look at."""

    code = 'MG222'
    summary = 'GuardInstanceLabels moves instances to the ignored ones, and the assigner takes no notice of those.'
    why = (
        'With ignore_iof_thr=-1, the default, the regions of ignored instances (crowds, too) are trained as '
        'background. Matchers of DETR-like heads know no ignored instances at all.'
    )
    advice = (
        'Write ignore_iof_thr=0.5 in every assigner of train_cfg, and keep_ignored=False in the guard of the training: '
        'crowds are then trained as before.'
    )
    severity = WARNING

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        moving = [
            guard
            for guard in transforms(config)
            if guard.name == 'GuardInstanceLabels'
            and guard.split == 'train'
            and guard.config.get('on_invalid', 'ignore') == 'ignore'
        ]
        if not moving:
            return
        heeding = [one for one in assigners(config) if one.name in ALWAYS or _is_set(one.get('ignore_iof_thr'))]
        # Where no assigner heeds crowds, they shall be trained as before.
        leaving = () if heeding else tuple((guard.at('keep_ignored'), False) for guard in moving)
        written = 'Write ignore_iof_thr=0.5' + (f', and keep_ignored=False at {moving[0].path}' if leaving else '')
        for assigner in assigners(config):
            if assigner.name in ALWAYS or assigner.cls is None:
                continue
            threshold = assigner.get('ignore_iof_thr')
            if threshold is None:
                yield self.at(
                    assigner.at('type'),
                    assigner.config['type'],
                    f'{assigner.name} knows no ignored instances: those of {moving[0].path} are trained as background.',
                    edits=[
                        Edit(
                            f"Write on_invalid='drop' at {moving[0].path}: it says what happens.",
                            SAFE,
                            '',
                            tuple((guard.at('on_invalid'), 'drop') for guard in moving),
                        )
                    ],
                )
            elif isinstance(threshold, (int, float)) and threshold <= 0:
                yield self.at(
                    assigner.at('ignore_iof_thr'),
                    threshold,
                    f'{assigner.name} takes no notice of the instances that {moving[0].path} ignores: they are '
                    f'trained as background.',
                    edits=[Edit(f'{written}.', SAFE, '', ((assigner.at('ignore_iof_thr'), 0.5), *leaving))],
                )


def _is_set(threshold: Any) -> bool:
    return isinstance(threshold, (int, float)) and threshold > 0
