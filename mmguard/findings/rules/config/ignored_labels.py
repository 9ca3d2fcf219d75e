"""Rules about configs whose parts ignore different labels, ignore a class, or misuse reduce_zero_label."""

from __future__ import annotations

from dataclasses import replace
from typing import Iterator, List

from mmguard.config.agreement import IgnoredLabel, count_classes, find_disagreeing_labels, find_ignored_labels
from mmguard.config.classes import get_default
from mmguard.config.parts import Part, find_datasets, find_pipelines, get_class_names, get_metainfo, says_classes
from mmguard.config.read import ReadConfig
from mmguard.facts.config import find_label_map
from mmguard.facts.labels import LabelFacts
from mmguard.findings.config_edits import drop_first_class, propose, reduce_zero_label, set_ignore_index
from mmguard.findings.edits import Edit
from mmguard.findings.finding import ERROR, INFO, LIKELY, POSSIBLE, WARNING, Finding
from mmguard.findings.rule import ConfigRule, Example, Facts
from mmguard.findings.views import has_num_classes
from mmguard.labels.spaces import VOID
from mmguard.language import Message
from mmguard.text import quantity, shorten


class IgnoredLabelsAgree(ConfigRule):
    code = 'MG208'
    about_labels = True
    aliases = ('MG114',)
    summary = 'Head, losses, metric and fill values of the config do not agree on the ignored label.'
    title = 'Label {value} is ignored here, but the head ignores label {first} ({place}).'
    title_head = 'The head ignores label {value}, but the guard and all other parts ignore label {first} ({place}).'
    title_metric = 'The metric ignores label {value}, but the head ignores label {first} ({place}).'
    title_reads = '{value} is treated as the ignored label here, but the head ignores {first} ({place}).'
    title_fill = 'Pixels are filled with {value}, which is not a class, but the head ignores {first} ({place}).'
    title_fill_class = 'Pixels are filled with {value}, the label of a class, but the head ignores {first} ({place}).'
    why = (
        'A label that only one part of the config ignores or fills in is a class for the others, or is out of range '
        'and ends the run with an index error or CUDA assert. A metric that ignores another label evaluates unlabeled '
        'pixels.'
    )
    example = Example(wrong='head: ignore_index=0; RandomCrop: seg_pad_val=255', right='head: ignore_index=255')
    limits = 'Fill values of transforms of your own are not known.'
    advice = (
        'Find out which value means unlabeled in the files (`mmguard scan CONFIG` counts all values; 255 is usual). '
        'Write this value as ignore_index in heads, losses and metric, and as the fill value of the transforms.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        dropped = any(_find_dropped(config))  # MG380 reports these
        for place, first in () if dropped else find_disagreeing_labels(config):
            classes = count_classes(first.part if first.role == 'head' else place.part)
            is_class = classes is not None and 0 <= place.value < classes
            titles = {'metric': self.title_metric, 'reads': self.title_reads, 'fill': self.title_fill}
            titles.update({} if first.role == 'head' else {'head': self.title_head})
            title = self.title_fill_class if place.role == 'fill' and is_class else titles.get(place.role, '')
            severe = place.role in ('loss', 'head') or (place.role == 'fill' and not is_class)
            value = (
                f'{place.value}'
                if place.written
                else Message('{value} (the default of {name})', value=place.value, name=place.part.name)
            )
            words = dict(value=value, first=first.value, place=first.path)
            ways, severity = _unify_labels(config, place, first, classes or 0), ERROR if severe else WARNING
            yield self.report_at(place.path, place.value, words, title, severity, ways)

    def certainty_given(self, finding: Finding, labels: LabelFacts) -> str:
        is_cause = finding.severity == ERROR and (not labels.values or finding.value in labels.values)
        return LIKELY if is_cause else POSSIBLE


def _unify_labels(config: ReadConfig, place: IgnoredLabel, first: IgnoredLabel, classes: int) -> List[Edit]:
    """Return one or both of two edits: ignore ``first.value`` at ``place``, or ignore ``place.value`` everywhere."""
    is_class = 0 <= place.value < classes
    filled = place.role in ('fill', 'reads')  # no label in a file changes its meaning
    asked = 'Is {value} your void (unlabeled) value?'
    question = '' if filled else Message(asked, value=first.value)
    title = 'Use the label that the head ignores.' if first.role == 'head' else 'Use the label that the guard ignores.'
    here = propose(title, (place.path, first.value), question=question)
    there = set_ignore_index(Facts(config=config), place.value, Message(asked, value=place.value))
    if first.value < 0:  # no file holds a negative label
        there = replace(there, question='')
    both = [here] if is_class or filled or place.value < 0 else [here, there]
    return [there] if first.value < classes and not is_class and place.value >= 0 else both


class DroppedNotIgnored(ConfigRule):
    code = 'MG380'
    about_labels = True
    summary = 'Classes that metainfo.classes leaves out become 255 when mmseg loads them, but another label is ignored.'
    title = 'The classes that metainfo.classes leaves out are loaded as 255, but {value} is ignored here.'
    why = (
        'A data set that names only some classes of its METAINFO maps pixels of the others to 255 (mmseg 0.x: to -1, '
        'which is 255 in 8 bits). If ignore_index differs, these pixels are out of range: an index error ends the run.'
    )
    example = Example(wrong="metainfo=dict(classes=('road', 'car')), ignore_index=100", right='ignore_index=255')
    limits = 'Only the label_map of a data set class is checked, not transforms of your own.'
    advice = 'Write ignore_index=255 in the heads, the losses and the metric.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for place in _find_dropped(config):
            edit = set_ignore_index(Facts(config=config), VOID)
            yield self.report_at(place.path, place.value, {'value': place.value}, edits=[edit])


def _find_dropped(config: ReadConfig) -> Iterator[IgnoredLabel]:
    """Yield the heads and losses that do not ignore 255, if a training set loads the classes it leaves out as 255."""
    sets = (one for one in find_datasets(config) if one.split == 'train')
    if any(VOID in find_label_map(one).values() for one in sets):
        yield from (one for one in find_ignored_labels(config) if one.role in ('head', 'loss') and one.value != VOID)


class IgnoredClass(ConfigRule):
    code = 'MG209'
    follows = ('MG208',)
    about_labels = True
    looks_at = ('config', 'labels')
    kinds = ('pixels',)
    aliases = ('MG113',)
    summary = 'ignore_index is the label of a class.'
    title = 'ignore_index={ignored} is one of the {classes}: 0 to {last}.'
    why = (
        'Ignoring removes the pixels of a class, but not its output channel: the class is never trained, but its score '
        'stays in every softmax, and the class may be predicted at test time.'
    )
    example = Example(wrong='num_classes=3, ignore_index=0', right='num_classes=3, ignore_index=255')
    limits = 'Cannot tell whether the class is ignored on purpose: each edit asks you.'
    advice = (
        'If class {ignored} should be trained, write ignore_index=255. If label {ignored} means unlabeled, remove '
        'this class from num_classes and from the class list.'
    )
    severity = WARNING

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        places = find_ignored_labels(config)
        for place in places:
            classes = count_classes(place.part if place.role == 'head' else place.part.owner)
            if place.role in ('head', 'loss') and classes is not None and 0 <= place.value < classes:
                # Pixels that these parts fill or ignore with another value are then trained, or out of range.
                others = [one for one in places if one.value != place.value and one.role in ('head', 'loss', 'fill')]
                yield self._report_class(place.path, place.value, classes, ERROR if others else WARNING)

    def _report_class(self, path: str, ignored: int, classes: int, severity: str = WARNING) -> Finding:
        words = dict(ignored=ignored, classes=quantity(classes, 'class'), last=classes - 1)
        return self.report_at(path, ignored, words, severity=severity)

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        ignored = finding.value
        yield set_ignore_index(facts, 255, Message('Should class {ignored} be trained?', ignored=ignored))
        question = 'Is 0 your void (unlabeled) value?'
        if ignored == 0 and facts.config is not None:
            found = drop_first_class(facts.config, question)
            if found is not None:
                yield found
        elif ignored == 0 and facts.labels is not None:
            said = {'reduce_zero_label': True, 'ignore_index': 255, 'num_classes': facts.labels.num_classes - 1}
            lines = tuple(f'{name}={value}' for name, value in said.items())
            yield Edit('Ignore the label 0, and remove it from the classes.', question, options=said, lines=lines)

    def look_in_labels(self, labels: LabelFacts) -> Iterator[Finding]:
        ignored = labels.ignore_index
        if has_num_classes(labels) and ignored is not None and 0 <= ignored < labels.num_classes:
            found = self._report_class('ignore_index', ignored, labels.num_classes)
            yield replace(found, certainty=self.certainty_given(found, labels))

    def certainty_given(self, finding: Finding, labels: LabelFacts) -> str:
        return POSSIBLE if labels.values else LIKELY


class ReduceZeroLabelDiffers(ConfigRule):
    code = 'MG210'
    summary = 'reduce_zero_label differs between data set and LoadAnnotations, or between splits.'
    title = 'reduce_zero_label is {here} here, but {there} at {place}: the labels of the splits differ by one.'
    title_loader = 'LoadAnnotations has reduce_zero_label={here}, but {place} is {there}: loading fails.'
    why = (
        'The loader compares its own reduce_zero_label with that of the data set and stops the run if they differ. If '
        'the splits differ, the model is tested against labels that are one off.'
    )
    example = Example(wrong='train: reduce_zero_label=True; val: False', right='train and val: reduce_zero_label=True')
    limits = 'If the splits are numbered differently, the values must differ, too: each edit asks you what 0 means.'
    advice = (
        'If 0 means unlabeled in the files and classes count from 1 (see `mmguard scan CONFIG`), write '
        'reduce_zero_label=True in the data sets of all splits, otherwise False. Remove reduce_zero_label from the '
        'loaders.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for pipeline in find_pipelines(config):
            for loader in (t for t in pipeline if t.name == 'LoadAnnotations' and t.scope == 'mmseg'):
                dataset, shift = loader.owner, loader.config.get('reduce_zero_label')
                of_data = None if dataset is None else dataset.get('reduce_zero_label')
                if isinstance(shift, bool) and isinstance(of_data, bool) and shift != of_data and dataset is not None:
                    said, place = dataset.says('reduce_zero_label'), dataset.place('reduce_zero_label')
                    there = (
                        f'{of_data}'
                        if said
                        else Message('{of_data} (the default of {name})', of_data=of_data, name=dataset.name)
                    )
                    words, ways = (
                        dict(here=shift, there=there, place=place),
                        _offer_both(config, of_data if said else shift),
                    )
                    yield self.report_at(loader.place('reduce_zero_label'), shift, words, self.title_loader, edits=ways)
        wrappers = find_datasets(config, wrappers=True)
        # With reduce_zero_label in ignore_keys of a ConcatDataset, the difference is intended.
        if config.scope != 'mmseg' or any('reduce_zero_label' in (w.config.get('ignore_keys') or ()) for w in wrappers):
            return
        first = None
        for dataset in find_datasets(config):
            shift = dataset.get('reduce_zero_label')
            if not isinstance(shift, bool):
                continue
            first = first or (dataset if dataset.split == 'train' else None)
            if first is None or first.name != dataset.name or shift == first.get('reduce_zero_label'):
                continue
            there, place = first.get('reduce_zero_label'), first.place('reduce_zero_label')
            words, ways = dict(here=shift, there=there, place=place), _offer_both(config, there is True)
            yield self.report_at(dataset.place('reduce_zero_label'), shift, words, edits=ways)


def _offer_both(config: ReadConfig, likelier: bool) -> List[Edit]:
    asked = {
        True: 'Does 0 mean unlabeled in the files of every split, and do classes count from 1?',
        False: 'Is 0 a class in the files of every split?',
    }
    return [reduce_zero_label(Facts(config=config), shift, asked[shift]) for shift in (likelier, not likelier)]


BACKGROUND = ('background', 'bg', 'backgrounds', 'back_ground', 'unlabeled', 'unlabelled', 'void', 'ignore', '背景')


class ReducedBackground(ConfigRule):
    code = 'MG211'
    summary = 'reduce_zero_label is True, but the class list starts with the background.'
    title = (
        'reduce_zero_label is True{default}: label 0 is ignored, but class 0 is {first}. Class 0 is never trained, all '
        'other labels are one too low, and {last} never occurs.'
    )
    why = (
        'reduce_zero_label makes 0 the ignored label and reduces every other label by one. If 0 is the background and '
        'the background is a class, this class is never trained, and the last class never occurs.'
    )
    example = Example(
        wrong="reduce_zero_label=True, metainfo=dict(classes=('background', 'road'))",
        right="reduce_zero_label=False, metainfo=dict(classes=('background', 'road'))",
    )
    limits = 'The background is recognized by its name only. If the files store it as 1, the config is correct.'
    advice = (
        'If 0 in the files is the background and should be predicted, write reduce_zero_label=False in the data sets '
        'and loaders. If not, remove the background from the class list, and reduce num_classes by one.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for dataset in find_datasets(config):
            names, place = get_class_names(dataset), dataset.place('reduce_zero_label')
            if not names or _fits_its_files(dataset, names[0]) or dataset.get('reduce_zero_label') is not True:
                continue
            if names[0].strip().strip('_').lower().replace(' ', '_') in BACKGROUND:
                default = (
                    '' if dataset.says('reduce_zero_label') else Message(' (the default of {name})', name=dataset.name)
                )
                words = dict(default=default, first=shorten(names[0]), last=shorten(names[-1]))
                yield self.report_at(place, True, words, edits=_offer_ways(config, names[0]))


def _fits_its_files(dataset: Part, first: str) -> bool:
    """Return True if reduce_zero_label and class 0 come from mmseg's data set (LoveDA: 1 background, 0 no data)."""
    stock = str(getattr(dataset.cls, '__module__', '')).startswith('mmseg.')
    chosen = says_classes(dataset) and first not in (get_metainfo(dataset).get('classes') or ())
    return stock and not chosen and get_default(dataset.cls, 'reduce_zero_label') is True


def _offer_ways(config: ReadConfig, first: str) -> List[Edit]:
    keep = reduce_zero_label(
        Facts(config=config),
        False,
        Message('Is {first} stored as 0, and should it be predicted?', first=shorten(first)),
    )
    leave = drop_first_class(config, Message('Is {first} stored as 0, and should it be ignored?', first=shorten(first)))
    return [keep] if leave is None else [keep, leave]


class ShiftAndMap(ConfigRule):
    code = 'MG232'
    severity = INFO
    summary = 'reduce_zero_label and label_map are both set: the version of mmseg decides which is applied first.'
    title = '{kind} has label_map and reduce_zero_label: mmseg subtracts 1 first, but versions before 1.0.0 map first.'
    why = (
        'MMSegmentation creates a label_map if a data set names only some of its classes. Since 1.0.0 '
        'reduce_zero_label subtracts 1 before the map is applied, which is correct; older versions apply the map '
        'first, so every pixel gets the label of the previous class.'
    )
    example = Example(wrong="mmseg 0.30: metainfo=dict(classes=('sky', 'wall'))", right='mmseg 1.0.0, same config')
    limits = 'The version of mmseg that is used for training is unknown.'
    advice = (
        'If mmseg is older than 1.0.0, upgrade it: `pip install -U mmsegmentation`. Otherwise nothing needs to change; '
        '`mmguard trace CONFIG` shows the label that each value becomes.'
    )

    def find(self, facts: Facts) -> Iterator[Finding]:
        # Scanned labels already show the result of the order, and other rules judge it.
        yield from super().find(facts) if facts.labels is None else ()

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for dataset in find_datasets(config):
            is_moved = any(raw != label for raw, label in find_label_map(dataset).items())
            if is_moved and dataset.get('reduce_zero_label') is True:
                yield self.report_at(dataset.place('reduce_zero_label'), True, dict(kind=dataset.name))
