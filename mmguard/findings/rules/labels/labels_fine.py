from __future__ import annotations

from typing import Iterator, Optional

from mmguard.findings.facts import LabelFacts, LoaderFacts
from mmguard.findings.finding import PROVEN
from mmguard.findings.rule import Example, Verdict
from mmguard.findings.views import (
    annotations_of,
    count_trained,
    has_num_classes,
    ids_of,
    listing,
    maps_of,
    share,
)
from mmguard.text import quantity


class LabelsFine(Verdict):
    """Labels that were all read and are all valid."""

    code = 'MG100'
    kinds = ('pixels', 'instances')
    needs = ()
    summary = 'Your labels are fine.'
    title_not_asked = 'Every label that was read is valid; what loads them was not asked.'
    title_not_judged = (
        'Every file can be read, but whether the labels are valid was not checked: num_classes is not known.'
    )
    why = 'Whatever is wrong, changing labels, num_classes or ignore_index would only hide it.'
    example = Example(
        wrong='num_classes=3, labels 0..2 and 255; a loss of nan is blamed on the labels',
        right='a lower learning rate',
    )
    limits = 'It cannot tell whether a valid label is the right one, nor what is made of it after it was loaded.'
    advice = (
        'Look elsewhere. With a config, `mmguard trace CONFIG` shows what the pipeline makes of the labels, `mmguard '
        'dry-run CONFIG` tests the program. In your own code look at resizing that is not nearest, at ignored pixels '
        'in loss and metric, and at uint8 labels in `num_classes * label`. If num_classes is not known, say it: '
        '`mmguard scan TARGET --num-classes N`.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        if annotations_of(facts).labelled_by == 'unknown':
            return None  # the label of a category id depends on the framework
        read = facts.histogram or (facts.annotations is not None and facts.annotations.images)
        return PROVEN if read and not facts.values and not facts.reasons else None

    def choose_title(self, facts: LabelFacts) -> str:
        if not has_num_classes(facts):
            return self.title_not_judged
        loader = facts.loader or LoaderFacts()
        return self.summary if loader.files and not loader.unknown else self.title_not_asked

    def evidence(self, facts: LabelFacts) -> str:
        return '; '.join([*self._counts(facts), *_list_checks(facts)])

    def _counts(self, facts: LabelFacts) -> Iterator[str]:
        """Yield the values found, and their counts."""
        found, counts = annotations_of(facts), count_trained(facts)
        if facts.histogram:
            ignored = f', or {facts.ignore_index}' if facts.ignore_index is not None else ''
            valid = f'all of them {found.min_label}..{facts.num_classes - 1}{ignored}'
            seen = valid if has_num_classes(facts) else f'values {listing(sorted(counts), 24)}'
            yield f'{sum(facts.histogram.values()):,} {facts.kind}, {seen}'
            void = counts.get(facts.ignore_index, 0) if facts.ignore_index is not None else 0
            if void:
                yield f'{100 * share(void, sum(counts.values())):.3g} % of them ignored'
            never = sorted(set(range(found.min_label, min(facts.num_classes, 10_000))) - ids_of(counts))
            if never and has_num_classes(facts):
                yield f'never seen: {listing(never)}'


def _list_checks(facts: LabelFacts) -> Iterator[str]:
    """Yield what was checked, on how many files and how, and what was not checked."""
    loader, found = facts.loader or LoaderFacts(), annotations_of(facts)
    read = quantity(len(found.sources) or facts.files, 'file')
    objects = f' (labels and boxes of {quantity(found.annotations, "annotation")} in {quantity(found.images, "image")})'
    asked = f', {quantity(loader.files, "sample")} of the built data set' if loader.files else ''
    yield f'checked: {read} read{objects if found.images else ""}{asked}'
    left = [] if has_num_classes(facts) else ['the class range']
    lists_images = found.names_from == 'categories'
    left += ['masks (--masks)'] if found.images and found.masks_read is False else []
    compared = maps_of(facts).image_forms or found.sizes_compared or (found.images and not lists_images) or facts.loader
    left += [] if compared else ['the images (--images DIR)']
    if loader.unknown or not loader.files:
        left.append(f'what the loader makes of them{f" ({loader.unknown})" if loader.unknown else ""}')
    yield f'not checked: {listing([*left, "what comes after the loading"])}'
