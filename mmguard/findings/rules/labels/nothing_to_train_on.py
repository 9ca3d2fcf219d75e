from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Iterator, List, Optional

from mmguard.config.guards import is_guarded
from mmguard.config.parts import losses
from mmguard.findings.edits import Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import LIKELY, PROVEN, Finding
from mmguard.findings.rule import DataRule, Example, Facts
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
from mmguard.text import quantity

#: Share of the pixels; so many classes and files there are at least.
NEARLY_ALL, MANY, SEVERAL_FILES = 0.75, 4, 5


class NothingToTrainOn(DataRule):
    """Files, or a whole set, of ignored pixels only."""

    code = 'MG128'
    shows_values = False
    kinds = ('pixels',)
    needs = ()
    summary = 'Label files without a pixel to train on.'
    title = 'Label files without a pixel to train on: {number} of {files}.'
    title_all = 'Every pixel of every file is ignored.'
    title_nearly = '{share:.3g} % of the pixels are ignored, and {missing} of {num_classes} classes never occur.'
    why = (
        'A batch of them has no valid pixel: OHEM indexes an empty tensor, losses that divide by the number of valid '
        'pixels (avg_non_ignore, nn.CrossEntropyLoss) give nan, and under DDP a rank without a graph hangs the others.'
    )
    example = Example(
        wrong='reduce_zero_label=True, files of 0 only',
        right='reduce_zero_label=False, num_classes=1 more',
    )
    limits = (
        'Scribbles may leave most pixels unlabelled on purpose: they are reported only if most classes never occur.'
    )
    advice = (
        'Compare the values as stored with what the loader makes of them, `mmguard trace CONFIG`: reduce_zero_label on '
        'files of 0, a label_map to the ignored label, files of another class list. If the files really hold no label, '
        'label them or leave them out of the split; `cat_max_ratio=0.75` in RandomCrop avoids most crops that are void '
        'only.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        if self._nothing_at_all(facts):
            return PROVEN
        if self._hardly_anything(facts):
            return LIKELY
        number = self._number(facts)
        known = config_of(facts).losses
        # What a GuardedLoss wraps is at `.loss`.
        bare = {path: kind for path, kind in known.items() if 'Guarded' not in kind and not path.endswith('.loss')}
        return LIKELY if number and (bare or not known) else None

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is None or facts.config is None or self._nothing_at_all(facts.labels):
            return
        if self._hardly_anything(facts.labels):
            return  # guarded losses would hide it
        bare = [loss for loss in losses(facts.config) if not is_guarded(loss) and not loss.path.endswith('.loss')]
        if bare:
            title = 'Guard the losses until these files are labelled or left out.'
            note = 'A batch without a valid pixel then gives a loss of 0 with a graph.'
            yield replace(guard_losses(facts.config, [loss.path for loss in bare], title), notes=(note,))

    def severity_of(self, facts: LabelFacts) -> str:
        return 'error' if self._nothing_at_all(facts) else 'warning'

    def choose_title(self, facts: LabelFacts) -> str:
        if self._nothing_at_all(facts):
            return self.title_all
        return self.title_nearly if self._hardly_anything(facts) else self.title

    def describe(self, facts: LabelFacts) -> Dict[str, Any]:
        part = 100 * share(self._void(facts), sum(trained(facts).values()))
        missing = len(self._missing(facts))
        return {
            'number': self._number(facts),
            'files': quantity(facts.files, 'file'),
            'share': part,
            'missing': missing,
        }

    def evidence(self, facts: LabelFacts) -> str:
        if self._nothing_at_all(facts) or not self._hardly_anything(facts):
            void = self._void(facts)
            return f'{void:,} {facts.kind} are ignored; values as stored: {listing(sorted(stored(facts)))}'
        return f'never seen: {listing(self._missing(facts), 20)}'

    def files(self, facts: LabelFacts) -> List[str]:
        return maps_of(facts).all_void

    def _number(self, facts: LabelFacts) -> int:
        return max(number_of(maps_of(facts), 'all_void'), maps_of(facts).void_files)

    def _hardly_anything(self, facts: LabelFacts) -> bool:
        """True if little is left of the pixels and of the classes. Scribbles leave few pixels, but all classes."""
        counts, classes = trained(facts), facts.num_classes
        if not facts.histogram or facts.values or classes < MANY or not knows_classes(facts):
            return False
        ignored = share(self._void(facts), sum(counts.values()))
        return ignored >= NEARLY_ALL and len(self._missing(facts)) > classes / 2 and facts.files >= SEVERAL_FILES

    def _missing(self, facts: LabelFacts) -> List[int]:
        return sorted(set(range(facts.num_classes)) - set(trained(facts)))

    def _void(self, facts: LabelFacts) -> int:
        return trained(facts).get(VOID if facts.ignore_index is None else facts.ignore_index, 0)

    def _nothing_at_all(self, facts: LabelFacts) -> bool:
        seen = ids_of(trained(facts)) - {facts.ignore_index}
        return bool(facts.histogram) and not seen and not facts.values
