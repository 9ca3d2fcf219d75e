from __future__ import annotations

from dataclasses import replace
from typing import Iterable, Iterator, List, Optional

from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import LIKELY, PROVEN, Finding
from mmguard.findings.map_edits import convert_files
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import listing, maps_of

TOLERANCE = 1e-4


class Fractions(DataRule):
    """Labels with decimals."""

    code = 'MG123'
    needs = ('maps',)
    summary = 'Labels are fractions: an image transform changed them (ToTensor divides by 255), or an average.'
    why = 'Cast to integers they are 0 nearly everywhere: nothing crashes, and only class 0 is learnt.'
    example = Example(wrong='mask = ToTensor()(mask)', right='mask = torch.as_tensor(np.array(mask)).long()')
    limits = 'Class numbers divided by 255 and probabilities can have the same values: its edits ask.'
    advice = (
        'Turn masks into tensors with `torch.as_tensor(np.array(mask)).long()`, not with ToTensor, and resize with '
        'nearest only. Files that hold k/255 are saved again as `np.round(label * 255).astype(np.uint8)`; files of '
        'probabilities need a threshold. If they are neither, export the labels again, as integers.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        maps = maps_of(facts)
        if maps.fractions or maps.loaded_otherwise.get('truncated'):
            return PROVEN
        small = maps.forms.get('float', 0) and maps.raw and max(maps.raw) <= 1 < facts.num_classes - 1
        return LIKELY if small else None

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        labels = facts.labels
        fractions = {} if labels is None else maps_of(labels).fractions
        if _are_of_255(fractions):
            question = 'Were the numbers of the classes divided by 255?'
            note = 'Read masks with `torch.as_tensor(np.array(mask)).long()`: ToTensor is for images.'
            for edit in convert_files(facts, 'Rewrite the files, times 255.', ASKS, question, scale=255):
                yield replace(edit, notes=(*edit.notes, note))
        if labels is not None and labels.num_classes == 2 and all(0 < value < 1 for value in fractions):
            question = 'Is each value the probability of the object?'
            yield from convert_files(facts, 'Rewrite the files with a threshold.', ASKS, question, threshold=0.5)

    def files(self, facts: LabelFacts) -> List[str]:
        return maps_of(facts).form_examples.get('float', [])

    def evidence(self, facts: LabelFacts) -> str:
        maps = maps_of(facts)
        values = sorted(maps.fractions)
        scaled = [value * 255 for value in values]
        texts = [f'{maps.forms.get("float", 0):,} float files']
        if values:
            texts.append(f'values {listing(f"{value:.5g}" for value in values)}')
            if _are_of_255(values):
                texts.append(f'which are {listing(f"{round(s)}/255" for s in scaled)}')
        return ', '.join(texts)


def _are_of_255(fractions: Iterable[float]) -> bool:
    """Return True if all are k / 255."""
    scaled = [value * 255 for value in fractions]
    return bool(scaled) and all(0 < s < 255 and abs(s - round(s)) < 255 * TOLERANCE for s in scaled)
