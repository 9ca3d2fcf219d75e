from __future__ import annotations

from collections import Counter
from typing import Any, Iterator, List, Optional

from mmguard.config.changes import REMOVED, Changes
from mmguard.config.head_classes import counts
from mmguard.config.parts import Part, classes_of, datasets, metainfo_of
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule
from mmguard.findings.usual_edits import with_list
from mmguard.text.words import counted


class ClassList(ConfigRule):
    """A class list that is no list, or under a name that nobody reads."""

    code = 'MG205'
    blames_labels = True
    summary = 'The class list is a string, holds a name twice, stands where nobody reads it, or has another palette.'
    why = (
        "classes=('person') is a string, not a tuple: each letter becomes a class. CLASSES and PALETTE were the names "
        'in MMDetection 2.x; now they are not read and the data set keeps its own classes. MMSegmentation refuses a '
        'palette of another length.'
    )
    advice = "Write metainfo=dict(classes=('person',)); the comma makes the tuple."

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for dataset in datasets(config):
            if dataset.config.get('classes') is not None and dataset.cls is not None and not dataset.is_old:
                yield self.at(
                    dataset.at('classes'),
                    dataset.config['classes'],
                    f'{dataset.name} takes no classes since MMDetection 3 and MMSegmentation 1: building it fails.',
                    edits=_listed(
                        config,
                        'Write metainfo=dict(classes=...) instead.',
                        dataset.config['classes'],
                        (dataset.at('classes'), REMOVED),
                        dataset.at('metainfo.classes'),
                    ),
                )
            metainfo = dataset.config.get('metainfo')
            colours = _palette_of(dataset)
            if colours is not None:
                names = classes_of(dataset) or []
                yield self.at(
                    dataset.at('metainfo.palette'),
                    colours,
                    f'{counted(colours, "colour")} for {counted(len(names), "class")}: {dataset.name} cannot be built.',
                    edits=[_without_palette(config, dataset, len(names))],
                )
            if not isinstance(metainfo, dict):
                continue
            at = dataset.at('metainfo')
            for key in ('CLASSES', 'PALETTE'):
                own = list(metainfo_of(dataset).get(key.lower()) or ())
                if key in metainfo and key.lower() not in metainfo and list(metainfo[key] or ()) != own:
                    yield self.at(
                        f'{at}.{key}',
                        metainfo[key],
                        f'Nobody reads {key}: {dataset.name} goes on with its own {key.lower()}.',
                        edits=_listed(
                            config,
                            f'Write {key.lower()} in small letters.',
                            metainfo[key],
                            (f'{at}.{key}', REMOVED),
                            f'{at}.{key.lower()}',
                        ),
                    )
            classes = metainfo.get('classes')
            if isinstance(classes, str) and classes_of(dataset) is None and not _is_file_name(classes):
                yield self.at(
                    f'{at}.classes',
                    classes,
                    f'A string, not a tuple: its {len(classes)} letters are taken for classes.',
                    edits=_listed(
                        config, f'Write classes=({classes!r},), with the comma.', classes, (), f'{at}.classes'
                    ),
                )
            elif isinstance(classes, (list, tuple)):
                twice = sorted(name for name, times in Counter(map(str, classes)).items() if times > 1)
                if twice:
                    yield self.at(
                        f'{at}.classes',
                        classes,
                        f'{", ".join(map(repr, twice))} stands in the list more than once: its labels are ambiguous.',
                        'Name every class once.',
                    )


def _listed(config: ReadConfig, text: str, classes: Any, gone: Any, place: str) -> List[Edit]:
    """The list as it was meant, at its place; heads that have another number follow in a second way."""
    if isinstance(classes, str) and place.endswith('classes') and not _is_file_name(classes):
        classes = (classes,)
    changes: Changes = (*((gone,) if gone else ()), (place, classes))
    move = Edit(text, SAFE, '', changes)
    return with_list(config, move, classes if place.endswith('classes') else None)


def _without_palette(config: ReadConfig, dataset: Part, names: int) -> Edit:
    metainfo = dataset.config.get('metainfo')
    own = isinstance(metainfo, dict) and metainfo.get('palette') is not None
    place = dataset.at('metainfo.palette')
    certain = all(count.value == names for count in counts(config))
    return Edit(
        f'Write {counted(names, "colour")}, or no palette at all: colours are then made up.',
        SAFE if certain else ASKS,
        '' if certain else f'Does the list name every class, {names}?',
        ((place, REMOVED) if own else (place, []),),
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
