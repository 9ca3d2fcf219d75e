from __future__ import annotations

from typing import Iterator

from mmguard.config.guards import guards_in
from mmguard.config.parts import pipelines
from mmguard.config.read import ReadConfig
from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.findings.usual_edits import propose


class GuardReportMissing(ConfigRule):
    """A guard whose counts do not get through the Pack transform."""

    code = 'MG223'
    summary = "A guard comes before the Pack transform, and 'label_guard' is not in its meta_keys."
    title = 'The counts of {guard} at {place} do not get through {pack}.'
    why = 'The guard sanitizes the labels, but its counts do not get through the Pack transform: the log says 0.'
    example = Example(wrong="meta_keys=('img_path',)", right="meta_keys=('img_path', 'label_guard')")
    limits = 'A Pack transform of your own that keeps what it likes is judged by its meta_keys.'
    advice = "Add 'label_guard' to meta_keys of the Pack transform, or put the guard right after it."
    severity = WARNING

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for pipeline in pipelines(config):
            guards = guards_in(pipeline)
            pack = next((t for t in pipeline if t.name.startswith('Pack')), None)
            if pack is None or not any(pipeline.index(guard) < pipeline.index(pack) for guard in guards):
                continue
            place, keys, first = pack.at('meta_keys'), pack.get('meta_keys'), guards[0]
            if isinstance(keys, (list, tuple)) and 'label_guard' not in keys:
                line = f"meta_keys=({', '.join(map(repr, keys))}, 'label_guard') at {pack.path}"
                edit = propose('Let the counts through.', (place, (*keys, 'label_guard')), lines=(line,))
                words = dict(guard=first.name, place=first.path, pack=pack.name)
                yield self.report_at(place, keys, words, edits=[edit])
