from __future__ import annotations

from typing import Dict, List, Optional

from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import PROVEN
from mmguard.findings.rule import Verdict
from mmguard.findings.views import (
    annotations_of,
    config_of,
    has_config,
    ids_of,
    knows_classes,
    listing,
    maps_of,
    share,
    subtracts_one,
    trained,
)
from mmguard.labels.numbering import COCO_IDS
from mmguard.text.words import counted

#: Of files whose reader is not known, whatever else is found.
OF_PALETTES = (
    "The files are palette PNGs: cv2.imread would read their colours, `.convert('L')` the brightness of these, "
    '`np.array(Image.open(path))` reads labels.'
)


class LabelsFine(Verdict):
    """Every label was read, and none is invalid."""

    code = 'MG100'
    kinds = ('pixels', 'instances')
    needs = ()
    summary = 'Your labels are fine.'
    why = 'Whatever is wrong, changing labels, num_classes or ignore_index would only hide it.'
    #: Where training looks like a matter of labels all the same: what shows it, the likeliest first.
    of_config = (
        '`mmguard trace CONFIG` shows what the pipeline makes of them. For a run that hangs, or dies on several '
        'ranks, there is `RankGuardHook`; for a metric that looks wrong the classes and ignore_index of the evaluator; '
        'for a loss of nan the learning rate, fp16.{ignored}{overflow}{order}'
    )
    of_maps = (
        'Look at what your own code makes of them: resizing that is not nearest, void that the loss does not ignore. '
        '{line}{ignored}{palette}{overflow}'
    )
    of_instances = 'Look at what your own code makes of them: augmentations, num_classes of the model. {remap}{line}'
    remap = (
        'RT-DETR, D-FINE and DEIM take other labels unless `remap_mscoco_category: False`, for these are no ids of '
        'COCO; `mmguard scan` reads their YAML. '
    )
    line = (
        '`CUDA_LAUNCH_BLOCKING=1` names the line that fails; where that touches no label, `mmguard env` says whether '
        'what is installed goes together.'
    )
    advice = of_maps
    unknown = 'Every file can be read, and nothing about the labels is odd; how many classes there are was not said.'
    say_it = 'Say it, to find invalid values: `mmguard scan TARGET --num-classes N`{guess}.'
    guess = ' (here N is {number}, or {most} with `--ignore-index {most}` if {most} is void)'
    unproven = 'Every label that was read is valid; the loader of the config was not asked: {unknown}.'
    ignored = (
        ' {share:.3g} % of the {kind} are {void}: each loss and metric needs `ignore_index={void}`, own code '
        '`valid = label != {void}` before it makes one-hot vectors or looks up weights.'
    )
    palette = f' {OF_PALETTES}'

    #: What a confusion matrix multiplies, `num_classes * label + prediction`, must fit the type of the label.
    overflow = (
        ' Own evaluation and analysis code: labels are uint8, and `num_classes * label` overflows from label {first} '
        'on; write `label.astype(np.int64)` first.'
    )

    order = (
        ' reduce_zero_label and the label_map of a shortened class list are both set: this loader subtracts first; '
        'mmseg before 1.0.0 mapped first, which made every class its neighbour.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        read = facts.histogram or (facts.annotations is not None and facts.annotations.images)
        return PROVEN if read and not facts.values and not facts.reasons else None

    def summarise(self, facts: LabelFacts) -> str:
        if not knows_classes(facts):
            return self.unknown
        return self.unproven if facts.loader is not None and facts.loader.unknown else self.summary

    def advise(self, facts: LabelFacts) -> str:
        if not knows_classes(facts):
            return self.say_it
        if has_config(facts):
            return self.of_config
        return self.of_instances if facts.kind == 'instances' else self.of_maps

    def words(self, facts: LabelFacts) -> Dict[str, str]:
        return {
            'line': self.line,
            'remap': self.remap if self._may_be_looked_up(facts) else '',
            'ignored': self._on_ignored(facts),
            'order': self.order if config_of(facts).label_map and subtracts_one(facts) else '',
            'overflow': self._on_overflow(facts),
            'palette': self.palette if maps_of(facts).forms.get('palette8') else '',
            'guess': self._guess(facts),
            'unknown': facts.loader.unknown if facts.loader is not None else '',
        }

    def evidence(self, facts: LabelFacts) -> str:
        texts: List[str] = []
        found = annotations_of(facts)
        if facts.histogram:
            ignored = f', or {facts.ignore_index}' if facts.ignore_index is not None else ''
            where = f' in {counted(facts.files, "file")}' if facts.files else ''
            number = sum(facts.histogram.values())
            valid = f'all of them {found.min_label}..{facts.num_classes - 1}{ignored}'
            valid = valid if knows_classes(facts) else self._values(facts)
            texts.append(f'{number:,} {facts.kind}{where}, {valid}')
            never = sorted(set(range(found.min_label, min(facts.num_classes, 10_000))) - ids_of(trained(facts)))
            if never and knows_classes(facts):
                texts.append(f'never seen: {listing(never)}')
        if found.images:
            texts.append(f'{counted(found.annotations, "annotation")} in {counted(found.images, "image")}')
        if facts.loader is not None and facts.loader.files:
            texts.append(f'the loader of the config returns the same of {counted(facts.loader.files, "file")}')
        return '; '.join(texts)

    def _may_be_looked_up(self, facts: LabelFacts) -> bool:
        """Whether ids of one's own may be taken for COCO's: nobody said what makes labels of them."""
        found = annotations_of(facts)
        return found.labelled_by == 'unknown' and not set(found.categories) <= set(COCO_IDS)

    def _guess(self, facts: LabelFacts) -> str:
        """How many classes there seem to be: with all values from 0 to one of them."""
        ids = ids_of(trained(facts))
        if facts.kind != 'pixels' or len(ids) < 2 or ids != set(range(len(ids))):
            return ''
        return self.guess.format(number=len(ids), most=len(ids) - 1)

    def _on_overflow(self, facts: LabelFacts) -> str:
        first = 255 // facts.num_classes + 1
        if facts.kind != 'pixels' or not knows_classes(facts) or max(ids_of(trained(facts)), default=0) < first:
            return ''
        return self.overflow.format(first=first)

    def _on_ignored(self, facts: LabelFacts) -> str:
        counts = trained(facts)
        ignored = counts.get(facts.ignore_index, 0) if facts.ignore_index is not None else 0
        if not ignored or facts.kind == 'instances':
            return ''
        return self.ignored.format(
            kind=facts.kind, share=100 * share(ignored, sum(counts.values())), void=facts.ignore_index
        )

    def _values(self, facts: LabelFacts) -> str:
        return f'values {listing(sorted(trained(facts)), 24)}'
