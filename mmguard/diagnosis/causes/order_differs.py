from __future__ import annotations

from typing import Dict, List, Optional, Tuple

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import annotations_of, class_lists, listing


class OrderDiffers(Cause):
    """The classes of the config in another order than the categories of the file."""

    code = 'MG141'
    kinds = ('pixels', 'instances')
    needs = ('annotations',)
    summary = 'The classes of the config stand in another order than the categories of the file.'
    why = (
        "mmdet's CocoDataset numbers categories in the order of the file, whatever the order of classes: the results "
        'are right, but carry the names of other classes.'
    )
    advice = 'Write them in the order of the file: `metainfo=dict(classes=({names},))`.'

    def likelihood(self, facts: LabelFacts) -> float:
        return 0.93 if self._displaced(facts) else 0.0

    def words(self, facts: LabelFacts) -> Dict[str, str]:
        displaced = self._displaced(facts)
        return {'names': ', '.join(map(repr, displaced[2])) if displaced else ''}

    def evidence(self, facts: LabelFacts) -> str:
        displaced = self._displaced(facts)
        if displaced is None:
            return ''
        path, names, ordered = displaced
        wrong = [f'label {i} is {b!r} in the file, {a!r} in {path}' for i, (a, b) in enumerate(zip(names, ordered))]
        return listing([text for text, a, b in zip(wrong, names, ordered) if a != b], 3)

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return {}

    def _displaced(self, facts: LabelFacts) -> Optional[Tuple[str, List[str], List[str]]]:
        """Path, classes there, the same in the order of the file."""
        if annotations_of(facts).format != 'coco':
            return None
        known = [str(name) for name in annotations_of(facts).categories.values()]
        if annotations_of(facts).labelled_by == 'class list':
            return None
        lists = class_lists(facts)
        if facts.class_names:
            lists = {path: names for path, names in lists.items() if names == facts.class_names}
            lists = lists or {'metainfo.classes': facts.class_names}
        for path, names in lists.items():
            ordered = [name for name in known if name in names]
            if sorted(ordered) == sorted(names) and ordered != names:
                return path, names, ordered
        return None
