from __future__ import annotations

from typing import Iterator, List, Optional

from mmguard.config.guards import is_guarded
from mmguard.config.parts import losses
from mmguard.findings.edits import Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import LIKELY, PROVEN, Finding
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.usual_edits import guard_losses
from mmguard.findings.views import (
    VOID,
    config_of,
    ids_of,
    knows_classes,
    listing,
    maps_of,
    number_of,
    share,
    stored,
    trained,
)
from mmguard.text.words import counted

#: Share of the pixels; so many classes and files there are at least.
NEARLY_ALL, MANY, SEVERAL_FILES = 0.75, 4, 5


class NothingToTrainOn(DataRule):
    """Files, or a whole set, of ignored pixels alone."""

    code = 'MG128'
    shows_values = False
    kinds = ('pixels',)
    needs = ()
    summary = 'Label files without a single pixel to train on.'
    why = (
        'A batch of them has no valid pixel: OHEM indexes an empty tensor, losses that divide by the number of valid '
        'pixels (avg_non_ignore, nn.CrossEntropyLoss) give nan, and under DDP '
        'a rank without a graph hangs the others.'
    )
    advice = (
        'Leave these files out of the split, or label them: losses that average over valid pixels divide by 0. '
        "In training `dict(type='RandomCrop', crop_size=..., "
        'cat_max_ratio=0.75)` avoids most crops that are void alone, and '
        "`type='GuardedOhemCrossEntropy'` gives an empty batch an attached 0."
    )
    every = (
        'Every pixel of every file is ignored: look at the values as stored, and at what the loader makes of them '
        '(`mmguard trace CONFIG`). Usual reasons: reduce_zero_label on files of 0 alone, a label_map to the ignored '
        'label, files of 255 alone.'
    )

    nearly = (
        'Nearly everything is ignored, and most classes never occur: look at the values as stored, at label_map and '
        'reduce_zero_label, and whether the files belong to this class list. `mmguard trace CONFIG` shows where values '
        'become the ignored label.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        if self._nothing_at_all(facts):
            return PROVEN
        if self._hardly_anything(facts):
            return LIKELY
        number = self._number(facts)
        known = config_of(facts).losses
        # What a GuardedLoss wraps stands at `.loss`.
        bare = {path: kind for path, kind in known.items() if 'Guarded' not in kind and not path.endswith('.loss')}
        return LIKELY if number and (bare or not known) else None

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is None or facts.config is None or self._nothing_at_all(facts.labels):
            return
        if self._hardly_anything(facts.labels):
            return  # guarded losses would hide it
        bare = [loss for loss in losses(facts.config) if not is_guarded(loss) and not loss.path.endswith('.loss')]
        if bare:
            title = 'Guard the losses until these files are labelled or left out: an empty batch gives an attached 0.'
            yield guard_losses(facts.config, [loss.path for loss in bare], title)

    def severity_of(self, facts: LabelFacts) -> str:
        return 'error' if self._nothing_at_all(facts) else 'warning'

    def summarise(self, facts: LabelFacts) -> str:
        if not self._hardly_anything(facts):
            return self.summary
        return 'Nearly all pixels are ignored, and most of the classes never occur.'

    def advise(self, facts: LabelFacts) -> str:
        if self._hardly_anything(facts):
            return self.nearly
        return self.every if self._nothing_at_all(facts) else self.advice

    def evidence(self, facts: LabelFacts) -> str:
        if self._nothing_at_all(facts):
            number = sum(facts.histogram.values())
            return f'all {number:,} {facts.kind} are ignored; stored are {sorted(stored(facts))[:8]}'
        if self._hardly_anything(facts):
            counts = trained(facts)
            part = 100 * share(counts.get(self._ignored(facts), 0), sum(counts.values()))
            never = sorted(set(range(facts.num_classes)) - set(counts))
            return (
                f'{part:.3g} % of the {facts.kind} are ignored; {len(never)} of {facts.num_classes} classes never '
                f'occur: {listing(never, 20)}'
            )
        return f'{counted(self._number(facts), "file")} of {facts.files:,} hold ignored {facts.kind} alone'

    def files(self, facts: LabelFacts) -> List[str]:
        return maps_of(facts).all_void

    def _number(self, facts: LabelFacts) -> int:
        return max(number_of(maps_of(facts), 'all_void'), maps_of(facts).void_files)

    def _hardly_anything(self, facts: LabelFacts) -> bool:
        """Whether little is left of the pixels and of the classes. Scribbles leave few pixels, but all classes."""
        counts, classes = trained(facts), facts.num_classes
        if not facts.histogram or facts.values or classes < MANY or not knows_classes(facts):
            return False
        ignored = share(counts.get(self._ignored(facts), 0), sum(counts.values()))
        missing = classes - len([label for label in counts if 0 <= label < classes])
        return ignored >= NEARLY_ALL and missing > classes / 2 and facts.files >= SEVERAL_FILES

    def _ignored(self, facts: LabelFacts) -> int:
        return VOID if facts.ignore_index is None else facts.ignore_index

    def _nothing_at_all(self, facts: LabelFacts) -> bool:
        seen = ids_of(trained(facts)) - {facts.ignore_index}
        return bool(facts.histogram) and not seen and not facts.values
