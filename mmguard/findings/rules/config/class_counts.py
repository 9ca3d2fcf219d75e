"""Rules about heads whose number of classes differs from the number of classes of the data set."""

from __future__ import annotations

from dataclasses import replace
from typing import Iterator, Mapping, Tuple

from mmguard.config.agreement import (
    Count,
    count_data_classes,
    find_class_counts,
    find_mismatched_counts,
    find_training_datasets,
)
from mmguard.config.parts import Part, find_datasets, get_class_names, get_classes_path, says_classes
from mmguard.config.read import ReadConfig
from mmguard.facts.labels import LabelFacts
from mmguard.findings.config_edits import combine_pair, name_classes, set_classes, set_heads
from mmguard.findings.edits import Edit
from mmguard.findings.finding import POSSIBLE, PROVEN, Finding
from mmguard.findings.rule import ConfigRule, Example, Facts
from mmguard.findings.views import VOID, count_trained, get_annotations, select_ids
from mmguard.language import Message
from mmguard.text import plural, quantity

#: Kind of classes that a head counts -> (singular, plural or None).
NOUNS = {'all': ('class', None), 'things': ('thing', None), 'stuff': ('kind of stuff', 'kinds of stuff')}


class HeadNumClasses(ConfigRule):
    code = 'MG201'
    about_labels = True
    aliases = ('MG143',)
    summary = 'num_classes of a head differs from the number of classes of the data set.'
    title = '{head} has {given}, but the data set has {expected}: {source}.'
    title_top = (
        '{head} has {given}, but the data set has {expected}: {source}. No head reads the num_classes at the top level '
        'of the config.'
    )
    why = (
        'A label beyond the channels of a head ends the run (CUDA error: device-side assert triggered), or is '
        'silently trained as background; surplus channels are never trained. Every head has its own num_classes: '
        'decode, auxiliary, bbox, mask, semantic, panoptic and fusion heads, and each stage of a cascade.'
    )
    example = Example(wrong='num_classes=19 in the head, for 11 classes', right='num_classes=11 in the head')
    limits = 'Only heads and class list are compared here; `mmguard scan` compares the class list with the files.'
    advice = (
        'Run `mmguard scan CONFIG` to see which classes the files contain. List them as metainfo=dict(classes=...) in '
        'all data sets (inside of wrappers), set num_classes of every head to their number, and adapt its class_weight.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for count, expected, dataset in find_mismatched_counts(config):
            given = quantity(count.value, *NOUNS[count.kind])
            words = dict(head=count.head.name, given=given, expected=expected, source=get_classes_path(dataset))
            title = self.title_top if config.data.get('num_classes') == expected else self.title
            yield self.report_at(count.path, count.value, words, title)

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.config is not None:
            wanted = {count.path: expected for count, expected, _ in find_mismatched_counts(facts.config)}
            yield from match_heads_and_list(facts, wanted, finding.value)


class BackgroundCounted(ConfigRule):
    code = 'MG202'
    about_labels = True
    aliases = ('MG142',)
    summary = 'num_classes of a detection head counts the background.'
    title = (
        '{head} has one class more than the data set, which has {expected}: {source}. The background is not a class.'
    )
    why = (
        'MMDetection 1.x counted the background as class 0. Since 2.0 the background is not counted, and labels start '
        'at 0. With one class too many, nothing crashes, but results are shifted by one class, or lack one class.'
    )
    example = Example(wrong='num_classes=21 in the bbox_head, for 20 object classes', right='num_classes=20')
    limits = 'Cannot tell this mistake from a list that lacks a name; `mmguard scan CONFIG` compares list and files.'
    advice = (
        'Compare the class list with the annotation files (`mmguard scan CONFIG`). If the list names every object '
        'class, write its length as num_classes of the heads; if a name is missing, add the name to metainfo.classes.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for count, expected, dataset in _find_one_more(config):
            words = dict(head=count.head.name, expected=expected, source=get_classes_path(dataset))
            yield self.report_at(count.path, count.value, words)

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.config is not None:
            wanted = {count.path: expected for count, expected, _ in _find_one_more(facts.config)}
            yield from match_heads_and_list(facts, wanted, finding.value, counted_one_more=True)

    def certainty_given(self, finding: Finding, labels: LabelFacts) -> str:
        # The annotations have as many categories as the heads: a name is missing in the list.
        known = get_annotations(labels)
        return POSSIBLE if known.left_out_names and len(known.categories) == finding.value else PROVEN


def _find_one_more(config: ReadConfig) -> Iterator[Tuple[Count, int, Part]]:
    data = [(dataset, count_data_classes(dataset)) for dataset in find_training_datasets(config)]
    for count in find_class_counts(config) if config.framework == 'mmdet' else ():
        for dataset, numbers in data:
            expected = numbers.get('things', numbers.get('all'))
            if expected is not None and count.kind == 'all' and count.value == expected + 1:
                yield count, expected, dataset
                break


#: Numbers of classes in mmdet's own configs: VOC, COCO, Objects365, LVIS, OpenImages.
COUNTS_OF_BASES = (20, 80, 365, 500, 601, 1203, 1230)


def match_heads_and_list(
    facts: Facts, expected: Mapping[str, int], number: int, counted_one_more: bool = False
) -> Iterator[Edit]:
    """Yield edits that make heads and class list agree, by changing the heads, the list or both.

    Args:
        expected (dict[str, int]): Path of a head -> number of classes in the list.
        number (int): Number of classes in the heads.
        counted_one_more (bool): True if the heads seem to count the background.
    """
    config, labels = facts.config, facts.labels
    assert config is not None
    data = find_training_datasets(config)
    said = any(says_classes(dataset) for dataset in data)
    known = {name for dataset in data for name in get_class_names(dataset) or ()}
    in_files = list(dict.fromkeys(get_annotations(labels).categories.values())) if labels is not None else []
    # The head that predicts comes first; the number of an auxiliary head may be outdated.
    leading = next((count.path for count in find_class_counts(config) if count.kind == 'all'), None)
    agrees = leading is not None and leading not in expected
    certain = agrees or (said and labels is not None)
    listed_here = sorted(set(expected.values()))
    asked = Message(
        'Does your data have {numbers} {noun}?',
        numbers=' and '.join(map(str, listed_here)),
        noun=plural(listed_here[-1], 'class'),
    )
    heads = set_heads(config, expected, '' if certain else asked)
    if labels is None and not certain:
        heads = replace(heads, notes=(*heads.notes, '`mmguard scan CONFIG` counts the classes of the files.'))
    lists = [get_class_names(dataset) for dataset in find_datasets(config) if says_classes(dataset)]
    elsewhere = next((names for names in lists if not said and names and len(names) == number), None)
    if in_files and len(in_files) == number and known != set(in_files):
        # The files have as many classes as the heads, so the list is wrong.
        yield set_classes(facts, in_files, 'Do you train all of these classes?' if said else '')
        if said and known & set(in_files):
            yield replace(heads, question='Do you train only the classes in the class list?')
    elif said or agrees or known == set(in_files):
        yield heads
    elif in_files:
        names = set_classes(facts, in_files)
        follow = set_heads(config, dict.fromkeys(expected, len(in_files)))
        edit = combine_pair(names, follow, 'List the categories of the file as classes, and set num_classes in heads.')
        yield replace(edit, question='Do you train all categories of the file?')
    elif elsewhere is not None:
        yield set_classes(facts, elsewhere)
    else:
        holds_more = labels is not None and any(number <= label < VOID for label in select_ids(count_trained(labels)))
        of_base = config.framework == 'mmdet' and number in COUNTS_OF_BASES
        if of_base:
            yield replace(heads, question=asked)
        if not holds_more and not counted_one_more and not any('stuff' in place for place in expected):
            yield _propose_names(config, number)
        # Any other number in a detector's heads was set by someone who counted the classes.
        if not of_base and (holds_more or counted_one_more or (labels is None and config.framework != 'mmdet')):
            yield replace(heads, question=asked)


def _propose_names(config: ReadConfig, number: int) -> Edit:
    """Return an edit that writes a class list of placeholder names, which the user must replace."""
    names = tuple(f'class {label}' for label in range(number))
    by_name = config.framework == 'mmdet'
    return Edit(
        'List the names of your classes in the data sets of all splits, inside of wrappers.',
        Message('Is this your own data, with {classes}?', classes=quantity(number, 'class')),
        tuple(change for dataset in find_datasets(config) for change in name_classes(dataset, names)),
        lines=(f'metainfo=dict(classes=({number} names))',),
        commands=('mmguard scan CONFIG',) if by_name else (),  # the scan reads the names from the file
        is_manual=by_name,  # annotations are matched by name, so placeholders would match none
    )
