from __future__ import annotations

from typing import Iterator, List

from mmguard.facts.labels import LabelFacts, LoaderFacts
from mmguard.findings.finding import PROVEN, Finding
from mmguard.findings.rule import AllClear, Example, Facts
from mmguard.findings.views import (
    compute_share,
    count_trained,
    get_annotations,
    get_maps,
    has_num_classes,
    join_items,
    select_ids,
)
from mmguard.language import Message, join
from mmguard.text import quantity


class LabelsFine(AllClear):
    """Labels that were all read and are all valid."""

    code = 'MG100'
    kinds = ('pixels', 'instances')
    needs = ()
    summary = 'Your labels are fine.'
    title_not_asked = 'All labels in the files are valid. Your loader was not run.'
    title_not_judged = (
        'Every file can be read, but whether the labels are valid was not checked: num_classes is not known.'
    )
    why = 'Whatever is wrong, changing labels, num_classes or ignore_index would only hide it.'
    example = Example(
        wrong='num_classes=3, labels 0..2 and 255; a loss of nan is blamed on the labels',
        right='a lower learning rate',
    )
    limits = 'It cannot tell whether a valid label is the right one, nor what later steps make of it.'
    advice = (
        'Look elsewhere: `mmguard trace CONFIG` shows what the pipeline makes of the labels, `mmguard dry-run CONFIG` '
        'tests the program. In your own code, look for resizes that interpolate, ignored pixels in loss and metric, '
        'and uint8 labels in `num_classes * label`.'
    )
    advice_not_judged = 'Pass the number of classes: `mmguard scan TARGET --num-classes N`.'
    advice_open = 'Check what was not read before you look elsewhere: {unread}.'

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        read = labels.histogram or (labels.annotations is not None and labels.annotations.images)
        # The label of a category id depends on the framework.
        is_open = get_annotations(labels).labelled_by == 'unknown'
        if not read or labels.values or labels.reasons or is_open or _has_unnamed(labels):
            return
        loader = labels.loader or LoaderFacts()
        title = '' if loader.files and not loader.unknown else self.title_not_asked
        unread = join_items(_list_unread(facts, labels))
        advice = self.advice_open if unread else self.advice
        if not has_num_classes(labels):
            title, advice = self.title_not_judged, self.advice_not_judged
        evidence = join('; ', [*_count(labels), *_list_checks(facts, labels)])
        yield self.report_in(facts, PROVEN, evidence, {'unread': unread}, title=title, advice=advice)


def _has_unnamed(labels: LabelFacts) -> bool:
    """Return True if label maps hold a label after the last name of the class list."""
    is_named = labels.kind == 'pixels' and bool(labels.class_names)
    found = select_ids(count_trained(labels)) - {labels.ignore_index}
    return is_named and max(found, default=0) >= len(labels.class_names)


def _count(labels: LabelFacts) -> Iterator[str]:
    """Yield the values found, and their counts."""
    if not labels.histogram:
        return
    counts = count_trained(labels)
    ignored = (
        Message(', or {ignore_index}', ignore_index=labels.ignore_index) if labels.ignore_index is not None else ''
    )
    valid = Message(
        'all of them {first}..{last}{ignored}',
        first=labels.coco.min_label,
        last=labels.last,
        ignored=ignored,
    )
    seen = valid if has_num_classes(labels) else Message('values {values}', values=join_items(sorted(counts), 24))
    number = sum(labels.histogram.values())
    yield Message('{number:,} {kind}, {seen}', number=number, kind=Message(labels.kind), seen=seen)
    void = counts.get(labels.ignore_index, 0) if labels.ignore_index is not None else 0
    if void:
        yield Message('{share:.3g} % of them ignored', share=100 * compute_share(void, sum(counts.values())))
    never = sorted(set(range(labels.coco.min_label, min(labels.num_classes, 10_000))) - select_ids(counts))
    if never and has_num_classes(labels):
        yield Message('never seen: {never}', never=join_items(never))


def _list_unread(facts: Facts, labels: LabelFacts) -> Iterator[str]:
    """Yield what a scan with other arguments would read."""
    found = get_annotations(labels)
    if found.images and labels.coco.masks_read is False:
        yield Message('masks (--masks)')
    lists_images = found.names_from == 'categories'
    if not (
        get_maps(labels).image_forms or found.sizes_compared or (found.images and not lists_images) or labels.loader
    ):
        yield Message('the images (--images DIR)')
    if facts.options and facts.config is None and not facts.siblings and labels.kind == 'instances':
        yield Message('the categories of other splits (scan the folder of all splits)')


def _list_checks(facts: Facts, labels: LabelFacts) -> Iterator[str]:
    """Yield what was checked, on how many files and how, and what was not checked."""
    loader, found = labels.loader or LoaderFacts(), get_annotations(labels)
    lists_images = found.names_from == 'categories'
    read = quantity((lists_images and len(found.sources)) or labels.files, 'file')
    objects = Message(
        ' (labels and boxes of {annotations} in {images})',
        annotations=quantity(found.annotations, 'annotation'),
        images=quantity(found.images, 'image'),
    )
    asked = (
        Message(', {samples} of the built data set', samples=quantity(loader.files, 'sample')) if loader.files else ''
    )
    yield Message(
        'checked: {files} read{objects}{asked}', files=read, objects=objects if found.images else '', asked=asked
    )
    left: List[str] = [] if has_num_classes(labels) else [Message('the class range')]
    left += _list_unread(facts, labels)
    if loader.unknown or not loader.files:
        left.append(
            Message(
                "the loader's output{why}",
                why=join('', (' (', loader.unknown, ')')) if loader.unknown else '',
            )
        )
    yield Message('not checked: {left}', left=join_items([*left, Message('the transforms after loading')]))
