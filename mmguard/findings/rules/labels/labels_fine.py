"""Rules that report that all labels are valid, or that a loader returns labels that differ from those in the files."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Tuple

from mmguard.facts.labels import LabelFacts, LoaderFacts
from mmguard.findings.finding import LIKELY, PROVEN, Finding
from mmguard.findings.rule import AllClear, DataRule, Example, Facts
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
    code = 'MG100'
    kinds = ('pixels', 'instances')
    needs = ()
    summary = 'Your labels are fine.'
    title_not_asked = 'All labels in the files are valid. Your loader was not run.'
    title_not_judged = (
        'Every file can be read, but whether the labels are valid was not checked: num_classes is not known.'
    )
    why = 'The labels are not the cause: changing labels, num_classes or ignore_index would only hide the fault.'
    example = Example(
        wrong='num_classes=3, labels 0..2 and 255; a loss of nan is blamed on the labels',
        right='a lower learning rate',
    )
    limits = 'Cannot tell whether a valid label is the right one, or whether later transforms change it.'
    advice = (
        'Look elsewhere: `mmguard trace CONFIG` shows how the pipeline changes the labels, `mmguard dry-run CONFIG` '
        'tests the program. In your own code, look for interpolating resizes, ignored pixels counted in loss or '
        'metric, and uint8 overflow in `num_classes * label`.'
    )
    advice_not_judged = 'Pass the number of classes: `mmguard scan TARGET --num-classes N`.'
    advice_open = 'Before you look elsewhere, check what was not read: {unread}.'

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
        evidence = join('; ', [*_list_values(labels), *_list_checks(facts, labels)])
        yield self.report_in(facts, PROVEN, evidence, {'unread': unread}, title=title, advice=advice)


def _has_unnamed(labels: LabelFacts) -> bool:
    """Return True if label maps contain a label beyond the last name of the class list."""
    is_named = labels.kind == 'pixels' and bool(labels.class_names)
    found = select_ids(count_trained(labels)) - {labels.ignore_index}
    return is_named and max(found, default=0) >= len(labels.class_names)


def _list_values(labels: LabelFacts) -> Iterator[str]:
    """Yield evidence: the values found, the share of ignored elements, and the classes never seen."""
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
        yield Message('{share:.3g} % are ignored', share=100 * compute_share(void, sum(counts.values())))
    never = sorted(set(range(labels.coco.min_label, min(labels.num_classes, 10_000))) - select_ids(counts))
    if never and has_num_classes(labels):
        yield Message('classes never seen: {never}', never=join_items(never))


def _list_unread(facts: Facts, labels: LabelFacts) -> Iterator[str]:
    """Yield the inputs that were not read, each with the way to let `mmguard scan` read it."""
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
    """Yield evidence: what was checked, on how many files, and what was not checked."""
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
        'The training gets the labels of the loader. The scan counts labels as mmseg 1.x and mmdet 3.x load them; '
        'another loader or version may return other labels (mmseg before 1.0 applies label_map before it subtracts 1).'
    )
    example = Example(
        wrong="dict(type='LoadMyMasks')  # returns 255 for class 2",
        right="dict(type='LoadAnnotations'), dict(type='GuardSegLabels', num_classes=19)",
    )
    limits = 'Only a few files are compared; what the loader returns for other files is not known.'
    advice = (
        '`mmguard trace CONFIG` shows the labels after each step: if the loading transform fails, correct it or its '
        'arguments. If it returns other labels, correct its label_map or reduce_zero_label, or add a guard after it: '
        '`mmguard apply CONFIG -o OUT`.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        loader = labels.loader or LoaderFacts()
        files = [*loader.differing, *loader.failed]
        words: Dict[str, Any] = {'number': len(loader.differing), 'files': quantity(loader.files, 'file')}
        if loader.differing:
            texts = [join(': ', (file, _describe(*both))) for file, both in list(loader.differing.items())[:_FEW]]
            evidence: str = Message(('{texts} (differs in {number} of {files})'), texts=join('; ', texts), **words)
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
            'label {label} {loaded:,} times (scan: {scanned:,})',
            label=label,
            loaded=loaded[label],
            scanned=scanned[label],
        )
        for label in values[0]
        if loaded[label] != scanned[label]
    ]
    return Message('the loader returns {counts}', counts=join_items(counts, 4))
