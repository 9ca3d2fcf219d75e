from __future__ import annotations

from typing import Iterator

from mmguard.check.config import ReadConfig
from mmguard.check.finding import WARNING, ConfigFinding
from mmguard.check.guards import guards_in
from mmguard.check.parts import pipelines
from mmguard.check.rule import Rule


class GuardReportLost(Rule):
    """A guard that mends, and nobody hears of it."""

    code = 'MG223'
    summary = "A guard stands before the Pack transform, and 'label_guard' is not in its meta_keys."
    why = 'The guard mends the labels, but its counts are left behind when the sample is packed: the log says 0.'
    advice = "Add 'label_guard' to meta_keys of the Pack transform, or put the guard right after it."
    severity = WARNING

    def find(self, config: ReadConfig) -> Iterator[ConfigFinding]:
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
                    f"Write meta_keys=({kept}, 'label_guard'), or put the guard right after {pack.name}.",
                )
