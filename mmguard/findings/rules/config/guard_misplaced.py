from __future__ import annotations

from typing import Iterator, List, Optional

from mmguard.config.guards import TRANSFORMS, guards_in
from mmguard.config.label_spaces import GUARDS, from_config
from mmguard.config.parts import Part, pipelines
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule

PIXELS, INSTANCES, IMAGES = TRANSFORMS


class GuardMisplaced(ConfigRule):
    """A guard that meets no labels, because of its place or its kind."""

    code = 'MG251'
    summary = 'A guard stands before the labels are loaded, or is made for the labels of another task.'
    why = 'Such a guard sees no label: the run goes on as if it were not there, and dies at the first invalid one.'
    advice = 'Put the guard right after the Pack transform, and take the guard of the task.'
    # Its counts would not get through: there are none.

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for pipeline in pipelines(config):
            steps = [step for step in pipeline if step.path.count('[') == pipeline[0].path.count('[')]
            pack = next((step for step in steps if step.name.startswith('Pack')), None)
            for guard in guards_in(steps):
                wanted = _guard_of(pack, steps)
                if pack is not None and wanted not in ('', guard.name):
                    space = from_config(config).of(GUARDS[wanted])
                    classes = guard.config.get('num_classes') if space is None else space.num_classes
                    changes = ((guard.at('type'), wanted), (guard.at('num_classes'), classes))
                    yield self.at(
                        guard.at('type'),
                        guard.name,
                        f'{guard.name} guards no label of {pack.name}: {wanted} does.',
                        edits=[Edit(f'Write type={wanted!r}, num_classes={classes}.', SAFE, '', changes)],
                    )
                elif _is_before_labels(steps, guard):
                    yield self.at(
                        guard.path,
                        guard.config,
                        f'{guard.name} stands before the labels are loaded.',
                        edits=[] if pack is None else [_moved(steps, guard, pack)],
                    )


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


def _moved(steps: List[Part], guard: Part, pack: Part) -> Edit:
    order = [step for step in steps if step is not guard]
    order.insert(order.index(pack) + 1, guard)
    pipeline = guard.path.rpartition('[')[0]
    text = f'Put {guard.name} right after {pack.name}.'
    return Edit(text, SAFE, '', ((pipeline, [step.config for step in order]),))
