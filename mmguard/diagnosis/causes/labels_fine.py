from __future__ import annotations

from typing import Dict, List

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Verdict
from mmguard.diagnosis.views import (
    annotations_of,
    has_config,
    ids_of,
    knows_classes,
    listing,
    maps_of,
    share,
    trained,
)
from mmguard.words import counted


class LabelsFine(Verdict):
    """Every label was read, and none is invalid."""

    code = 'MG100'
    kinds = ('pixels', 'instances')
    needs = ()
    summary = 'Your labels are fine.'
    why = 'Whatever is wrong, changing labels, num_classes or ignore_index would only hide it.'
    advice = (
        '{more_to_say}Look elsewhere: '
        '`mmguard check CONFIG` (class weights with ignored pixels or of the wrong length, one channel with '
        'softmax, num_classes of every head), `mmguard trace CONFIG` (what the pipeline makes of the labels), '
        '`mmguard env` (versions, CUDA, compiled ops). A CUDA error names the wrong line: `CUDA_LAUNCH_BLOCKING=1` '
        'shows the right one. A loss of nan: learning rate, fp16, gradient clipping.{remark}'
    )
    ignored = (
        ' {share:.3g} % of the pixels are {void}, ignored: every loss and metric must know `ignore_index={void}`; own '
        'code that makes one-hot vectors of labels, or looks up class weights by them, must leave them out first: '
        '`valid = label != {void}`.'
    )
    unknown = 'Every file can be read, and nothing about the labels is odd; how many classes there are was not said.'
    say_it = 'Say how many classes there are, to find invalid values: `mmguard scan TARGET --num-classes N`{guess}. '
    guess = ' (here N is {number}, or {most} with `--ignore-index {most}` if {most} is void)'
    palette = (
        ' The files are palette PNGs: right for mmseg and Pillow, but cv2.imread reads their colours; in own loaders '
        'write `np.array(Image.open(path))`.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        read = facts.histogram or (facts.annotations is not None and facts.annotations.images)
        return 0.9 if read and not facts.values and not facts.reasons else 0.0

    def summarise(self, facts: LabelFacts) -> str:
        return self.summary if knows_classes(facts) else self.unknown

    def words(self, facts: LabelFacts) -> Dict[str, str]:
        palette = maps_of(facts).forms.get('palette8') and not has_config(facts)
        return {
            'remark': self._on_ignored(facts) + (self.palette if palette else ''),
            'more_to_say': '' if knows_classes(facts) else self.say_it.format(guess=self._guess(facts)),
        }

    def evidence(self, facts: LabelFacts) -> str:
        texts: List[str] = []
        found = annotations_of(facts)
        if facts.histogram:
            what = 'pixels' if facts.kind == 'pixels' else 'instances'
            ignored = f', or {facts.ignore_index}' if facts.ignore_index is not None else ''
            where = f' in {counted(facts.files, "file")}' if facts.files else ''
            number = sum(facts.histogram.values())
            valid = f'all of them 0..{facts.num_classes - 1}{ignored}' if knows_classes(facts) else self._values(facts)
            texts.append(f'{number:,} {what}{where}, {valid}')
            never = sorted(set(range(min(facts.num_classes, 10_000))) - ids_of(trained(facts)))
            if never and knows_classes(facts):
                texts.append(f'never seen: {listing(never)}')
        if found.images:
            texts.append(f'{counted(found.annotations, "annotation")} in {counted(found.images, "image")}')
        return '; '.join(texts)

    def _guess(self, facts: LabelFacts) -> str:
        """How many classes there seem to be: with all values from 0 to one of them."""
        ids = ids_of(trained(facts))
        if facts.kind != 'pixels' or len(ids) < 2 or ids != set(range(len(ids))):
            return ''
        return self.guess.format(number=len(ids), most=len(ids) - 1)

    def _values(self, facts: LabelFacts) -> str:
        return f'values {listing(sorted(trained(facts)), 24)}'

    def _on_ignored(self, facts: LabelFacts) -> str:
        counts = trained(facts)
        ignored = counts.get(facts.ignore_index, 0) if facts.ignore_index is not None else 0
        if not ignored or facts.kind != 'pixels':
            return ''
        return self.ignored.format(share=100 * share(ignored, sum(counts.values())), void=facts.ignore_index)
