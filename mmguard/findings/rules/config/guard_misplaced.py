from __future__ import annotations

from typing import Iterator, List, Optional

from mmguard.config.guards import TRANSFORMS, guards_in
from mmguard.config.label_spaces import from_config
from mmguard.config.parts import Part, pipelines
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.finding import ERROR, Finding
from mmguard.findings.rule import ConfigRule

PIXELS, INSTANCES, IMAGES = TRANSFORMS
#: Pack transform -> the only guard whose labels it packs.
GUARD_OF = {'PackSegInputs': PIXELS, 'PackInputs': IMAGES}


class GuardMisplaced(ConfigRule):
    """A guard that meets no labels, because of its place or its kind."""

    code = 'MG251'
    summary = 'A guard stands before the labels are loaded, or is made for the labels of another task.'
    why = 'Such a guard sees no label: the run goes on as if it were not there, and dies at the first invalid one.'
    advice = 'Put the guard right after the Pack transform, and take the guard of the task.'
    severity = ERROR

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for pipeline in pipelines(config):
            steps = [step for step in pipeline if step.path.count('[') == pipeline[0].path.count('[')]
            pack = next((step for step in steps if step.name.startswith('Pack')), None)
            for guard in guards_in(steps):
                wanted = GUARD_OF.get(pack.name, guard.name) if pack is not None else guard.name
                if wanted != guard.name:
                    yield self._of_another_task(config, guard, wanted, pack.name if pack else '')
                elif _is_before_labels(steps, guard):
                    yield self._too_early(config, steps, guard, pack)

    def _of_another_task(self, config: ReadConfig, guard: Part, wanted: str, pack: str) -> Finding:
        spaces = from_config(config).by_kind()
        space = spaces.get('pixels' if wanted == PIXELS else 'instances')
        edits = []
        if space is not None:
            changes = ((guard.at('type'), wanted), (guard.at('num_classes'), space.num_classes))
            edits = [Edit(f'Write type={wanted!r}, num_classes={space.num_classes}.', SAFE, '', changes)]
        message = f'{guard.name} guards no label of {pack}: {wanted} does.'
        return self.at(guard.at('type'), guard.name, message, f'Write type={wanted!r}.', edits=edits)

    def _too_early(self, config: ReadConfig, steps: List[Part], guard: Part, pack: Optional[Part]) -> Finding:
        path = guard.path.rpartition('[')[0]
        edits = []
        if pack is not None:
            rest = [step.config for step in steps if step is not guard]
            at = next(number for number, step in enumerate(rest) if step is pack.config) + 1
            moved = [*rest[:at], guard.config, *rest[at:]]
            edits = [Edit(f'Put {guard.name} right after {pack.name}.', SAFE, '', ((path, moved),))]
        loader = next(step for step in steps if 'Annotation' in step.name)
        message = f'{guard.name} stands before {loader.name}: there are no labels yet.'
        return self.at(guard.path, guard.config, message, edits=edits)


def _is_before_labels(steps: List[Part], guard: Part) -> bool:
    later = steps[steps.index(guard) + 1 :]
    before = steps[: steps.index(guard)]
    return any('Annotation' in step.name for step in later) and not any('Annotation' in step.name for step in before)
