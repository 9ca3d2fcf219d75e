from __future__ import annotations

from typing import Iterator

from mmguard.config.guards import guards_in
from mmguard.config.parts import pipelines
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import ConfigRule


class GuardReportMissing(ConfigRule):
    """A guard that sanitizes, and nobody hears of it."""

    code = 'MG223'
    summary = "A guard stands before the Pack transform, and 'label_guard' is not in its meta_keys."
    why = 'The guard sanitizes the labels, but its counts are left behind when the sample is packed: the log says 0.'
    advice = "Add 'label_guard' to meta_keys of the Pack transform, or put the guard right after it."
    severity = WARNING

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for pipeline in pipelines(config):
            guards = guards_in(pipeline)
            pack = next((t for t in pipeline if t.name.startswith('Pack')), None)
            if pack is None or not any(pipeline.index(guard) < pipeline.index(pack) for guard in guards):
                continue
            keys = pack.get('meta_keys')
            if isinstance(keys, (list, tuple)) and 'label_guard' not in keys:
                first = guards[0]
                kept = ', '.join(map(repr, keys))
                yield self.at(
                    pack.at('meta_keys'),
                    keys,
                    f'The counts of {first.name} at {first.path} do not get through {pack.name}.',
                    edits=[
                        Edit(
                            f"Write meta_keys=({kept}, 'label_guard'), or put the guard right after {pack.name}.",
                            SAFE,
                            '',
                            ((pack.at('meta_keys'), (*keys, 'label_guard')),),
                        )
                    ],
                )
