from __future__ import annotations

from typing import Dict, List, Set

from mmguard.diagnosis.causes.background_counted import BackgroundCounted
from mmguard.diagnosis.class_counts import classes_of_heads, is_open_vocabulary
from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import class_lists, config_of, listing


class HeadsDifferFromData(Cause):
    """A head with another number of classes than the data set, or than the other heads."""

    code = 'MG143'
    kinds = ('pixels', 'instances')
    needs = ('config',)
    blames_labels = False
    summary = 'num_classes of a head does not match the classes of the data set, or of another head.'
    why = (
        'A base config has many heads and wrappers, and one was not reached: training dies on labels the head does not '
        'know, or the first evaluation does.'
    )
    advice = (
        'Write `num_classes={listed}` in every head: {heads}. If the data set should have other classes, its list did '
        'not arrive: `metainfo=dict(classes=(...))` belongs into the innermost dataset, inside RepeatDataset or '
        'ConcatDataset ({lists}).'
    )
    panoptic = (
        'Write `num_things_classes={listed}, num_stuff_classes=0` (or as your data has them) in panoptic_head and in '
        'panoptic_fusion_head, and give loss_cls `class_weight=[1.0] * {listed} + [0.1]`: {heads}.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        if BackgroundCounted().likelihood(facts):
            return 0.0
        if self._wrong(facts):
            return 0.9
        heads = set(classes_of_heads(config_of(facts)).values())
        return 0.6 if len(heads) > 1 and not class_lists(facts) and not is_open_vocabulary(config_of(facts)) else 0.0

    def advise(self, facts: LabelFacts) -> str:
        return self.panoptic if any('num_things' in path for path in self._wrong(facts)) else self.advice

    def words(self, facts: LabelFacts) -> Dict[str, object]:
        heads = self._wrong(facts) or classes_of_heads(config_of(facts))
        listed = self._listed(facts)
        return {
            'listed': max(listed, default=facts.num_classes),
            'heads': listing(heads, 6),
            'lists': listing(class_lists(facts), 4) or 'train_dataloader.dataset.dataset',
        }

    def evidence(self, facts: LabelFacts) -> str:
        heads = self._wrong(facts) or classes_of_heads(config_of(facts))
        texts: List[str] = [f'{path}={number}' for path, number in heads.items()]
        lists = [f'{path} has {len(names)} ({listing(names, 3)})' for path, names in class_lists(facts).items()]
        return '; '.join(part for part in (listing(texts, 6), listing(lists, 4)) if part)

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return {}

    def _listed(self, facts: LabelFacts) -> Set[int]:
        return {len(names) for names in self._lists(facts).values()}

    def _lists(self, facts: LabelFacts) -> Dict[str, List[str]]:
        """Those of the training where there are any: a tracker, for one, is evaluated on other names."""
        lists = class_lists(facts)
        return {path: names for path, names in lists.items() if path.partition('_')[0] not in ('val', 'test')}

    def _wrong(self, facts: LabelFacts) -> Dict[str, int]:
        lists = self._lists(facts)
        heads = classes_of_heads(config_of(facts))
        if not lists or is_open_vocabulary(config_of(facts)):
            return {}
        if any('Panoptic' in path for path in lists):
            heads = {path: number for path, number in heads.items() if 'num_things' in path}  # boxes are things alone
        listed = self._listed(facts)
        if len(listed) == 1:
            return {path: number for path, number in heads.items() if number not in listed}
        # Lists of different lengths: a head cannot match them all.
        return {path: number for path, number in heads.items() if listed != {number}}
