"""reduce_zero_label that is inconsistent, hides a class, or is combined with a label map."""

from __future__ import annotations

from typing import Iterator, List

from mmguard.config.classes import get_default
from mmguard.config.parts import Part, find_datasets, find_pipelines, get_class_names, get_metainfo, says_classes
from mmguard.config.read import ReadConfig
from mmguard.facts.config import find_label_map
from mmguard.findings.class_edits import drop_first_class
from mmguard.findings.edits import Edit
from mmguard.findings.finding import INFO, Finding
from mmguard.findings.rule import ConfigRule, Example, Facts
from mmguard.findings.usual_edits import reduce_zero_label
from mmguard.language import Message
from mmguard.text import shorten


class ReduceZeroLabelDiffers(ConfigRule):
    code = 'MG210'
    summary = 'reduce_zero_label differs between data set and LoadAnnotations, or between splits.'
    title = 'reduce_zero_label is {here} here, but {there} at {place}: the labels of the splits differ by one.'
    title_loader = 'LoadAnnotations has reduce_zero_label={here}, but {place} is {there}: loading fails.'
    why = (
        'The loader compares its own reduce_zero_label with that of the data set and stops the run where they differ. '
        'Where the splits differ, the model is tested against labels that are one off.'
    )
    example = Example(wrong='train: reduce_zero_label=True; val: False', right='train and val: reduce_zero_label=True')
    limits = 'Splits whose files are numbered differently need different values: its edits ask.'
    advice = (
        'Check whether 0 means unlabeled in the files and classes count from 1 (`mmguard scan CONFIG` counts the '
        'values). If so, write reduce_zero_label=True in the data sets of all splits, if not, write False; leave it '
        'out of the loaders.'
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
    summary = 'reduce_zero_label=True, and the class list starts with the background.'
    title = (
        'reduce_zero_label is True{default}: label 0 is ignored, but class 0 is {first}. It is never trained, the '
        'others are one off and {last} never occurs.'
    )
    why = (
        'reduce_zero_label makes 0 the ignored label and moves every other label down by one. If 0 is the background '
        'and the background is a class, it is never trained, all classes are one off and the last one never occurs.'
    )
    example = Example(
        wrong="reduce_zero_label=True, metainfo=dict(classes=('background', 'road'))",
        right="reduce_zero_label=False, metainfo=dict(classes=('background', 'road'))",
    )
    limits = 'It goes by the name of the first class; files that store the background as 1 are right as they are.'
    advice = (
        'If 0 in the files is the background and should be predicted, write reduce_zero_label=False in the data sets '
        'and loaders. If it should not be predicted, remove it from the class list and reduce num_classes by one.'
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
    """Return True if the shift fits the data set class: LoveDA stores the background as 1, missing data as 0."""
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
    summary = 'reduce_zero_label and a label_map at once: which comes first depends on the version of mmseg.'
    title = '{kind} has a label_map and reduce_zero_label: mmseg subtracts 1 first since 1.0.0, older ones map first.'
    why = (
        'MMSegmentation makes a label_map when a data set names only some of its classes. Since 1.0.0 '
        'reduce_zero_label subtracts 1 before the map is applied, as it should be; older versions apply the map '
        'first, so every pixel gets the label of the class before.'
    )
    example = Example(wrong="mmseg 0.30: metainfo=dict(classes=('sky', 'wall'))", right='the same with mmseg 1.0.0')
    limits = 'It does not know which version of mmseg trains.'
    advice = (
        'Upgrade a version before 1.0.0: `pip install -U mmsegmentation`. With a later one nothing needs to change. '
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
