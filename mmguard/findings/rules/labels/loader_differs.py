from __future__ import annotations

from typing import Any, Dict, Iterator, List, Tuple

from mmguard.facts.labels import LabelFacts, LoaderFacts
from mmguard.findings.finding import LIKELY, PROVEN, Finding
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import join_items
from mmguard.language import Message, join
from mmguard.text import quantity

_FEW = 2


class LoaderDiffers(DataRule):
    code = 'MG178'
    shows_values = False
    kinds = ('pixels', 'instances')
    needs = ('loader',)
    summary = "The config's loader returns labels that differ from those in the files, or fails on a file."
    title = "The config's loader returns labels that differ from those that this scan counts, in {number} of {files}."
    title_stops = "The config's loader fails on files that can be read."
    why = (
        'Training sees what the loader returns. The table of the scan follows the loaders of mmseg 1.x and mmdet 3.x; '
        'one of your own, or of another version (mmseg before 1.0 maps before it shifts), returns other labels.'
    )
    example = Example(
        wrong="dict(type='LoadMyMasks')  # returns 255 for class 2",
        right="dict(type='LoadAnnotations'), dict(type='GuardSegLabels', num_classes=19)",
    )
    limits = 'It compares a few files; what the loader makes of the others is not known.'
    advice = (
        '`mmguard trace CONFIG` shows the labels that training sees, step by step. If the loader fails, correct the '
        'transform that loads the annotations, or its arguments. If it returns other labels, give it what the scan '
        'assumes (label_map, reduce_zero_label), or place a guard after it: `mmguard apply CONFIG -o OUT`.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        loader = labels.loader or LoaderFacts()
        files = [*loader.differing, *loader.failed]
        words: Dict[str, Any] = {'number': len(loader.differing), 'files': quantity(loader.files, 'file')}
        if loader.differing:
            texts = [join(': ', (file, _describe(*both))) for file, both in list(loader.differing.items())[:_FEW]]
            evidence: str = Message('{texts} ({number} of {files} compared)', texts=join('; ', texts), **words)
            yield self.report_in(facts, PROVEN, evidence, words, files=files)
        elif loader.failed:
            evidence = '; '.join(f'{file}: {raised}' for file, raised in list(loader.failed.items())[:_FEW])
            yield self.report_in(facts, LIKELY, evidence, title=self.title_stops, files=files)


def _describe(loaded: Dict[int, int], scanned: Dict[int, int]) -> str:
    """Describe how the labels of a file differ from those that the scan counts."""
    values: Tuple[List[int], List[int]] = (sorted(loaded), sorted(scanned))
    if values[0] != values[1]:
        return Message(
            'the loader returns {loaded}, the scan counts {scanned}',
            loaded=join_items(values[0], 12),
            scanned=join_items(values[1], 12),
        )
    counts = [
        Message(
            '{label} ({loaded:,} times, scan {scanned:,})',
            label=label,
            loaded=loaded[label],
            scanned=scanned[label],
        )
        for label in values[0]
        if loaded[label] != scanned[label]
    ]
    return Message('the loader returns {counts}', counts=join_items(counts, 4))
