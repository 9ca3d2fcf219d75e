from __future__ import annotations

from collections import Counter
from typing import Any, Dict, Iterator, List, Optional

from mmguard.config.changes import REMOVED
from mmguard.config.head_classes import counts, has_stuff_among_things
from mmguard.config.parts import Part, classes_of, datasets, metainfo_of
from mmguard.config.read import ReadConfig
from mmguard.findings.class_edits import move_class_list
from mmguard.findings.edits import Edit
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.findings.usual_edits import propose
from mmguard.findings.views import listing
from mmguard.text import quantity


class ClassList(ConfigRule):
    """A class list that is not a list, or has a name that is not read."""

    code = 'MG205'
    blames_labels = True
    summary = 'The class list is a string, holds a name twice, is not read, has stuff among things, or another palette.'
    title_argument = '{kind} takes no classes since MMDetection 3 and MMSegmentation 1: building it fails.'
    title_palette = '{colours} for {classes}: {kind} cannot be built.'
    title_capitals = '{key} is not read: {kind} keeps its own {small}.'
    title_string = 'classes is a string, not a tuple: its {letters} letters become classes.'
    title_stuff = (
        'Stuff is listed among the things: label {label} is {name}, but heads take labels below {things} for things.'
    )
    title_twice = 'The class list holds {names} more than once: their labels are ambiguous.'
    why = (
        "classes=('person') is a string, not a tuple: each letter becomes a class. CLASSES and PALETTE were the names "
        'in MMDetection 2.x; now they are not read and the data set keeps its own classes. MMSegmentation refuses a '
        'palette of another length.'
    )
    example = Example(wrong="metainfo=dict(classes=('person'))", right="metainfo=dict(classes=('person',))")
    limits = 'Names that are merely misspelt are not seen here, but by `mmguard scan CONFIG`.'
    advice = (
        "Write metainfo=dict(classes=('person',)) in small letters: the comma makes the tuple. Name every class once; "
        'a palette has one colour per class, or is left out. Of a panoptic set list the things, then the stuff, in '
        '"categories" of the files, too; only then count them in the heads.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for dataset in datasets(config):
            metainfo, at = dataset.config.get('metainfo'), dataset.at('metainfo')
            given, place = dataset.config.get('classes'), dataset.at('classes')
            if given is not None and dataset.cls is not None and not dataset.is_old:
                ways = _write_list(config, 'Move the classes to metainfo.', f'{at}.classes', given, place)
                yield self.report_at(place, given, dict(kind=dataset.name), self.title_argument, edits=ways)
            colours = _palette_of(dataset)
            if colours is not None:
                number = len(classes_of(dataset) or [])
                words = dict(colours=quantity(colours, 'colour'), classes=quantity(number, 'class'), kind=dataset.name)
                ways = [_drop_palette(config, dataset, number)]
                yield self.report_at(f'{at}.palette', colours, words, self.title_palette, edits=ways)
            if not isinstance(metainfo, dict):
                continue
            for key in ('CLASSES', 'PALETTE'):
                small = key.lower()
                own = list(metainfo_of(dataset).get(small) or ())
                if key in metainfo and small not in metainfo and list(metainfo[key] or ()) != own:
                    title = f'Write {small} in small letters.'
                    ways = _write_list(config, title, f'{at}.{small}', metainfo[key], f'{at}.{key}')
                    words = dict(key=key, kind=dataset.name, small=small)
                    yield self.report_at(f'{at}.{key}', metainfo[key], words, self.title_capitals, edits=ways)
            classes, place = metainfo.get('classes'), f'{at}.classes'
            if isinstance(classes, str) and classes_of(dataset) is None and not _is_file_name(classes):
                ways = _write_list(config, 'Write a tuple, with a comma after the name.', place, classes)
                yield self.report_at(place, classes, dict(letters=len(classes)), self.title_string, edits=ways)
            elif isinstance(classes, (list, tuple)):
                twice = sorted(name for name, times in Counter(map(str, classes)).items() if times > 1)
                if twice:
                    yield self.report_at(place, classes, dict(names=listing(map(repr, twice))), self.title_twice)
                things = metainfo.get('thing_classes') or ()
                if config.framework == 'mmdet' and has_stuff_among_things(classes, things):
                    label = next(label for label, name in enumerate(classes) if name not in things)
                    of_stuff: Dict[str, Any] = dict(label=label, name=classes[label], things=len(things))
                    yield self.report_at(place, classes, of_stuff, self.title_stuff)


def _write_list(config: ReadConfig, title: str, place: str, classes: Any, *removed: str) -> List[Edit]:
    """Write the list as it was meant; a second edit adds the heads that have another number."""
    is_list = place.endswith('classes')
    if isinstance(classes, str) and is_list and not _is_file_name(classes):
        classes = (classes,)
    move = propose(title, *((gone, REMOVED) for gone in removed), (place, classes))
    return move_class_list(config, move, classes if is_list else None)


def _drop_palette(config: ReadConfig, dataset: Part, names: int) -> Edit:
    metainfo = dataset.config.get('metainfo')
    own = isinstance(metainfo, dict) and metainfo.get('palette') is not None
    certain = all(count.value == names for count in counts(config))
    return propose(
        'Drop the palette: colours are then made up.',
        (dataset.at('metainfo.palette'), REMOVED if own else []),
        question='' if certain else f'Does the list name every class, {names}?',
        if_not='' if certain else 'Complete the list.',
    )


def _palette_of(dataset: Part) -> Optional[int]:
    # Length of a palette that BaseSegDataset refuses.
    metainfo = dataset.config.get('metainfo')
    palette = metainfo.get('palette') if isinstance(metainfo, dict) else None
    palette = metainfo_of(dataset).get('palette') if palette is None else palette
    names = classes_of(dataset)
    if not hasattr(dataset.cls, 'get_label_map') or not isinstance(palette, (list, tuple)) or not names:
        return None
    own = metainfo_of(dataset).get('classes')
    chosen = own is not None and list(own) != names
    if len(palette) in (0, len(names)) or (chosen and len(palette) > len(names)):
        return None
    return len(palette)


def _is_file_name(text: str) -> bool:
    return '/' in text or text.endswith(('.txt', '.csv', '.json'))
