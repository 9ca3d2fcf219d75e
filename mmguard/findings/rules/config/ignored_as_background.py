from __future__ import annotations

from typing import Any, Iterator

from mmguard.config.parts import assigners, transforms
from mmguard.config.read import ReadConfig
from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.findings.usual_edits import propose

#: Assigners that leave ignored regions out without an argument.
ALWAYS = ('CenterRegionAssigner',)


class IgnoredAsBackground(ConfigRule):
    """Ignored instances that the assigner does not look at."""

    code = 'MG222'
    summary = 'GuardInstanceLabels moves instances to the ignored ones, but the assigner does not look at those.'
    title = '{assigner} does not look at the instances that {guard} ignores: they are trained as background.'
    title_unable = '{assigner} cannot ignore instances: those of {guard} are trained as background.'
    why = (
        'With ignore_iof_thr=-1, the default, the regions of ignored instances (crowds, too) are trained as '
        'background. Matchers of DETR-like heads know no ignored instances at all.'
    )
    example = Example(wrong="dict(type='MaxIoUAssigner')", right="dict(type='MaxIoUAssigner', ignore_iof_thr=0.5)")
    limits = 'An assigner of your own is judged by its argument ignore_iof_thr.'
    advice = (
        'Write ignore_iof_thr=0.5 in every assigner of train_cfg, and keep_ignored=False in the guard of the training: '
        "crowds are then trained as before. If an assigner has no ignore_iof_thr, write on_invalid='drop' in the guard."
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
        for assigner in assigners(config):
            if assigner.name in ALWAYS or assigner.cls is None:
                continue
            place, threshold = assigner.at('ignore_iof_thr'), assigner.get('ignore_iof_thr')
            words = dict(assigner=assigner.name, guard=moving[0].path)
            if threshold is None:
                drops = ((guard.at('on_invalid'), 'drop') for guard in moving)
                edit, kind = propose('Drop invalid instances in the guard.', *drops), assigner.config['type']
                yield self.report_at(assigner.at('type'), kind, words, self.title_unable, edits=[edit])
            elif isinstance(threshold, (int, float)) and threshold <= 0:
                note = 'With keep_ignored=False crowds are trained as before.'
                title, changes = 'Leave ignored regions out of the training.', ((place, 0.5), *leaving)
                edit = propose(title, *changes, notes=(note,) if leaving else ())
                yield self.report_at(place, threshold, words, edits=[edit])


def _is_set(threshold: Any) -> bool:
    return isinstance(threshold, (int, float)) and threshold > 0
