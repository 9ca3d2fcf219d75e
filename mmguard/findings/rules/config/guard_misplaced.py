from __future__ import annotations

from typing import Iterator, List, Optional

from mmguard.config.guards import TRANSFORMS, guards_in
from mmguard.config.label_spaces import GUARDS, from_config
from mmguard.config.parts import Part, pipelines
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import Edit
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.findings.usual_edits import as_code, propose

PIXELS, INSTANCES, IMAGES = TRANSFORMS


class GuardMisplaced(ConfigRule):
    """A guard that meets no labels, because of its place or its kind."""

    code = 'MG251'
    summary = 'A guard comes before the labels are loaded, or is made for the labels of another task.'
    title = '{guard} comes before the labels are loaded.'
    title_kind = '{guard} guards no label of {pack}: {wanted} does.'
    why = 'Such a guard sees no label: the run goes on as if it were missing, and dies at the first invalid one.'
    example = Example(
        wrong="[..., dict(type='GuardSegLabels', num_classes=19), dict(type='LoadAnnotations'), ...]",
        right="[..., dict(type='PackSegInputs'), dict(type='GuardSegLabels', num_classes=19)]",
    )
    limits = 'It knows the Pack transforms of the frameworks; a pipeline with one of your own is not looked at.'
    advice = (
        'Put the guard right after the Pack transform, and take the guard of the task: GuardSegLabels for label maps, '
        'GuardInstanceLabels for boxes and masks, GuardClsLabels for images.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for pipeline in pipelines(config):
            steps = [step for step in pipeline if step.path.count('[') == pipeline[0].path.count('[')]
            pack = next((step for step in steps if step.name.startswith('Pack')), None)
            for guard in guards_in(steps):
                wanted = _guard_of(pack, steps)
                if pack is not None and wanted not in ('', guard.name):
                    space = from_config(config).get(GUARDS[wanted])
                    classes = guard.config.get('num_classes') if space is None else space.num_classes
                    edit = propose(
                        'Write the guard of this task.', (guard.at('type'), wanted), (guard.at('num_classes'), classes)
                    )
                    words = dict(guard=guard.name, pack=pack.name, wanted=wanted)
                    yield self.report_at(guard.at('type'), guard.name, words, self.title_kind, edits=[edit])
                elif _is_before_labels(steps, guard):
                    ways = [] if pack is None else [_move(steps, guard, pack)]
                    yield self.report_at(guard.path, guard.config, dict(guard=guard.name), edits=ways)


def _guard_of(pack: Optional[Part], steps: List[Part]) -> str:
    """Return the only guard that has labels in a pipeline; empty if that is not known."""
    name = '' if pack is None else pack.name
    if name == 'PackDetInputs' and any(step.get('with_seg') for step in steps):
        return ''
    return {'PackSegInputs': PIXELS, 'PackInputs': IMAGES, 'PackDetInputs': INSTANCES}.get(name, '')


def _is_before_labels(steps: List[Part], guard: Part) -> bool:
    loads = ['Annotation' in step.name for step in steps]
    at = steps.index(guard)
    return any(loads[at:]) and not any(loads[:at])


def _move(steps: List[Part], guard: Part, pack: Part) -> Edit:
    order = [step for step in steps if step is not guard]
    order.insert(order.index(pack) + 1, guard)
    pipeline = guard.path.rpartition('[')[0]
    title, line = (
        f'Move {guard.name} right after {pack.name}.',
        f'{as_code(guard.config)} after {pack.name} in {pipeline}',
    )
    return propose(title, (pipeline, [step.config for step in order]), lines=(line,))
