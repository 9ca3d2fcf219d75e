"""Rules about label maps stored as colors, and palette files that are read as colors."""

from __future__ import annotations

from dataclasses import replace
from typing import AbstractSet, ClassVar, Dict, FrozenSet, Iterator, List, Optional, Sequence, Set, Tuple

from mmguard.config.parts import find_datasets, find_transforms, get_palette
from mmguard.facts.labels import LabelFacts
from mmguard.findings.edits import Edit
from mmguard.findings.file_edits import convert_files, list_splits, list_stored_values, renumber
from mmguard.findings.finding import INFO, LIKELY, POSSIBLE, PROVEN, WARNING, Finding
from mmguard.findings.known_sets import CITYSCAPES, VOC, Color, compute_grays, compute_voc_color, match_grays
from mmguard.findings.rule import DataRule, Example, Facts, find_files_with
from mmguard.findings.rules.labels.gray import threshold, write_two_classes
from mmguard.findings.views import (
    MANY_CHANNELS,
    VOID,
    as_map,
    count_stored,
    count_trained,
    find_files_named,
    get_maps,
    has_num_classes,
    join_items,
    rise_evenly,
    select_ids,
    subtracts_one,
)
from mmguard.language import Message, join
from mmguard.text import quantity

#: Maximum number of colors in the evidence.
FEW_COLORS = 6
BLACK = (0, 0, 0)


class ChannelRule(DataRule):
    """Base class of rules about label files with more than one channel."""

    needs = ('maps',)
    follows = ('MG101', 'MG102', 'MG103', 'MG106', 'MG107', 'MG116', 'MG121', 'MG125', 'MG135', 'MG136')
    #: True if all channels have the same values.
    equal: ClassVar[bool]

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        maps, forms = get_maps(labels), _count_forms(labels)
        is_gray = maps.gray_in_color >= sum(forms.values())
        is_alpha = set(maps.forms) == {'gray_alpha'} and bool(maps.raw)  # the labels are in the first channel
        if not forms or (is_gray or is_alpha) != self.equal:
            return
        evidence = join_items(
            Message('{files} with {form}', files=quantity(count, 'file'), form=Message(MANY_CHANNELS[form]))
            for form, count in forms.items()
        )
        ranked = sorted(maps.colors, key=lambda color: -maps.colors[color])
        evidence += f'; {quantity(len(ranked), "color")}: {join_items(ranked, FEW_COLORS)}' if ranked else ''
        files: Sequence[str] = [file for form in forms for file in maps.form_examples.get(form, ())]
        files = files or find_files_with(labels, labels.values) or find_files_named(labels, '')
        words = {'forms': join_items(Message(MANY_CHANNELS[form]) for form in forms)}
        # If files with several channels are gray, values changed by compression (MG136) are the worse fault.
        certainty = LIKELY if maps.lossy and is_gray else PROVEN
        yield self.report_in(facts, certainty, evidence, words, files=files)


def _count_forms(labels: LabelFacts) -> Dict[str, int]:
    return {form: n for form, n in get_maps(labels).forms.items() if form in MANY_CHANNELS and n > 0}


class StoredAsColors(ChannelRule):
    code = 'MG120'
    aliases = ('MG131',)
    equal = False
    summary = 'Label files contain colors, not class indices.'
    title = 'Label files have more than one channel ({forms}): colors, not class indices.'
    why = (
        'A loss expects one integer per pixel: a color file has another shape, or its colors are read as gray levels '
        'instead of class indices. PALETTE of a data set is for drawing only; it does not decode files.'
    )
    example = Example(wrong='(128, 0, 0) for class 1 in an RGB file', right='1 in a PNG of one channel')
    limits = 'Colors are looked up only in the palettes of the config, of Cityscapes and of VOC.'
    advice = (
        'Look up the class of each color in the class list of the tool that drew the files. Save one channel as PNG, '
        'with the same table of colors for all splits: `label[(rgb == color).all(-1)] = index`.'
    )
    advice_many = (
        'There are more colors than classes: the colors mark instances or panoptic segments, or JPEG or soft edges '
        'mixed the colors. Export the classes again, as PNG of one channel.'
    )

    def advise(self, facts: Facts) -> str:
        labels = facts.labels or LabelFacts()
        most = labels.num_classes + 1 if has_num_classes(labels) else 256
        return self.advice if 0 < len(get_maps(labels).colors) <= most else self.advice_many

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        colors = {color for split in list_splits(facts) for color in get_maps(split).colors}
        if get_maps(labels).lossy or not colors:
            return
        title, known = (
            'Rewrite the files so that each color becomes the index of its class.',
            self._build_table(facts, colors),
        )
        if known:
            clear = colors <= set(known)
            others = {} if clear else dict.fromkeys(colors - set(known), VOID)
            question = (
                '' if clear else Message('Is {others} your void (unlabeled) color?', others=join_items(sorted(others)))
            )
            note = ('If files *_gtFine_labelTrainIds.png exist, use them without conversion.',)
            notes = note if set(known) <= set(CITYSCAPES) else ()
            for edit in convert_files(facts, title, question, colors={**known, **others}):
                yield replace(edit, notes=(*edit.notes, *notes))
        elif len(colors) == 2 and BLACK in colors and (not has_num_classes(labels) or labels.num_classes == 2):
            # With any other number of colors, the classes are ambiguous.
            table = {color: int(color != BLACK) for color in sorted(colors)}
            yield from convert_files(facts, title, 'Is black the background?', colors=table)

    def _build_table(self, facts: Facts, colors: Set[Color]) -> Dict[Color, int]:
        """Return {color: label} from a palette of the config or a known palette, or {} if no palette fits."""
        for dataset in find_datasets(facts.config) if facts.config is not None else ():
            palette = get_palette(dataset)
            table: Dict[Color, int] = {}
            for label, color in enumerate(palette):
                table.setdefault(color, label)
            if len(set(table) & colors) >= 2:
                return table
        known = _find_palette(colors)
        names = [] if facts.labels is None else facts.labels.class_names
        if known is None or (known is CITYSCAPES and names and len(names) != len(set(CITYSCAPES.values()) - {VOID})):
            return {}
        classes = len(names) if facts.labels is None else facts.labels.num_classes
        return {color: label for color, label in known.items() if color in colors or label < classes}


class EqualChannels(ChannelRule):
    code = 'MG580'
    equal = True
    summary = 'Label files have several equal channels, or an alpha channel: one channel is enough.'
    title = 'Label files have more than one channel ({forms}), but no colors: the first channel contains the values.'
    why = 'A loss expects one integer per pixel: with three channels the shapes do not fit.'
    example = Example(wrong='Image.open(path).convert("RGB")', right='Image.open(path).convert("L")')
    advice = 'Save the first channel as PNG: `Image.fromarray(np.array(Image.open(path))[..., 0]).save(path)`.'
    advice_white = (
        'Save one channel as PNG, with the object as 1: `Image.fromarray((mask[..., 0] > 127).astype(np.uint8))`, '
        'where `mask = np.array(Image.open(path))`.'
    )

    def advise(self, facts: Facts) -> str:
        labels = facts.labels
        is_white = labels is not None and labels.num_classes <= 2 and max(get_maps(labels).raw, default=0) > 127
        return self.advice_white if is_white else self.advice

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        values = sorted(list_stored_values(facts))
        is_alpha = not get_maps(labels).gray_in_color
        if is_alpha and not set(values) <= {*range(labels.num_classes), labels.ignore_index}:
            return  # without alpha the labels are still wrong: then another rule finds this mistake
        if values == [0, VOID]:
            question: str = 'Is white the object, not void (unlabeled)?'
            title = 'Keep the first channel, with the values 0 and 1.'
            is_two = labels.num_classes <= 2 or not has_num_classes(labels)
            write = write_two_classes if is_two else convert_files
            yield from write(facts, title, question, label_map={VOID: 1})
            return
        thresholds = list(threshold(facts, labels))
        yield from thresholds
        if thresholds:
            return
        if not self._find_levels(labels):
            yield from convert_files(facts, 'Keep the first channel.')
        elif len(values) == labels.num_classes:
            name, table = _match_palette(facts, labels)
            title = 'Keep the first channel, and map its levels to classes.'
            if name:
                question = Message(_CONVERTED, name=name)
                yield from convert_files(facts, title, question, label_map=table)
            if name or not rise_evenly(values):
                return
            table = {level: label for label, level in enumerate(values)}
            question = Message('Are {values} the classes, in the order of your class list?', values=join_items(values))
            yield from convert_files(facts, title, question, label_map=table)

    def _find_levels(self, labels: LabelFacts) -> List[int]:
        """Return the gray levels if they are far apart, exceed num_classes and are at most one per class, else []."""
        values = sorted(get_maps(labels).raw)
        high = (
            has_num_classes(labels)
            and values
            and values[-1] >= labels.num_classes
            and len(values) <= labels.num_classes
        )
        return values if high and values[0] == 0 and min(b - a for a, b in zip(values, values[1:])) >= 8 else []


def _find_palette(colors: Set[Color]) -> Optional[Dict[Color, int]]:
    """Return the known palette that contains all of the colors, or ``None`` if no palette does."""
    for palette in (CITYSCAPES, VOC):
        # Pure red on black is also Cityscapes' rider.
        classes = [color for color in colors & set(palette) if palette[color] != VOID]
        if len(classes) >= 2 and colors <= set(palette):
            return palette
    return None


def _match_palette(facts: Facts, labels: LabelFacts) -> Tuple[str, Dict[int, int]]:
    """Return (name of a palette, {stored value: label}) if the files of all splits contain only grays of its colors.

    Look in the palettes of the config and of Cityscapes; return ('', {}) if no palette fits.
    """
    values = {value for value in list_stored_values(facts) if value >= 0}
    if labels.kind != 'pixels' or subtracts_one(labels) or 'palette8' in get_maps(labels).forms:
        return '', {}
    palettes = {
        dataset.place('metainfo.palette'): {color: label for label, color in enumerate(get_palette(dataset))}
        for dataset in (find_datasets(facts.config) if facts.config is not None else ())
    }
    if labels.num_classes == len(set(CITYSCAPES.values()) - {VOID}):
        palettes['Cityscapes'] = CITYSCAPES
    for name, palette in palettes.items():
        table = match_grays(palette.items(), values) or match_grays(palette.items(), values - {VOID})
        if table:
            return name, table
    return '', {}


_CONVERTED = 'Were the files drawn in the palette of {name} and converted to gray?'
VOC_GRAYS = 'VOC (labelme)'
_COLORS = [compute_voc_color(label) for label in range(1, 64)]
#: Channel values of the first 63 colors of VOC's palette, without 0: 64, 128 and 192.
CHANNELS: FrozenSet[int] = frozenset(value for color in _COLORS for value in color if value)
#: Gray level of a color of VOC's palette -> label.
GRAYS = compute_grays((compute_voc_color(label), label) for label in range(1, 21))
#: Gray levels of labels 1 to 6, rounded up or down: two of them identify VOC's palette.
FIRST_GRAYS: FrozenSet[int] = frozenset({38, 75, 113, 14, 15, 52, 53, 89, 90})


class PaletteReadAsColors(DataRule):
    code = 'MG121'
    follows = ('MG106', 'MG107', 'MG116', 'MG125')
    needs = ()
    summary = 'Palette PNGs are read, or were saved, as colors instead of indices.'
    title = 'Palette PNGs are read as colors: their indices are correct, but the loader discards them.'
    title_black = 'The palette of the files is all black: reading indices gives labels, reading colors gives only 0.'
    title_reader = 'The files have a palette: a loader gets labels from them only if it reads their indices.'
    title_gray = 'The files contain the gray levels of palette colors: the indices are gone.'
    title_batch = 'The values look like palette colors or their gray levels ({name}), not like indices: {levels}.'
    why = 'cv2.imread returns colors (128, 64, 192, ...) or their gray levels (38, 75, 113, ...) instead of indices.'
    example = Example(wrong='cv2.imread(path, 0) of a palette PNG', right='np.array(Image.open(path))')
    limits = 'Without the files only values are checked, and gray levels chosen by hand may equal those of a palette.'
    advice = (
        "Read the indices: `dict(type='LoadAnnotations', imdecode_backend='pillow')`, or in your own code "
        '`np.array(Image.open(path))` without `.convert()`. If the files are gray already, export them again as '
        'palette or index PNGs, or map each gray level to its class with a label_map.'
    )
    pytorch = (
        'If the files are palette PNGs, read their indices: np.array(Image.open(path)), not cv2.imread or '
        '.convert("L"). Do not map levels to classes: several colors may share a level.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        maps, stored = get_maps(labels), count_stored(labels)
        table = _match_palette(facts, labels)[1]
        is_mapped = all(
            sum(stored.get(value, 0) for value in table if table[value] == label) == labels.histogram.get(label, 0)
            for label in set(table.values()) - {VOID}
        )
        certainty = self._judge(labels) if is_mapped else PROVEN if labels.values else LIKELY
        is_black = self._is_black(labels)
        if certainty is None:
            return
        if is_black:
            evidence: str = Message(
                '{black:,} of {files:,} files have a black palette; stored values: {values}',
                black=maps.black_palettes,
                files=labels.files,
                values=join_items(sorted(stored)),
            )
            yield self.report_in(facts, certainty, evidence, title=self.title_black, severity=WARNING)
            return
        mapping = [f'label_map={as_map(table)}'] if table else []
        texts = [labels.evidence] if labels.values else mapping
        if maps.forms.get('palette8'):
            texts.append(quantity(maps.forms['palette8'], 'palette PNG'))
        if maps.loaded_otherwise.get('colors'):
            read = quantity(maps.loaded_otherwise['colors'], 'file')
            texts.append(Message('{files} that the loader reads as colors', files=read))
        depends, seen = self._depends_on_reader(labels), select_ids(stored) - {0}
        is_gray = table or (maps.forms and not maps.forms.get('palette8') and seen and seen <= set(GRAYS))
        title = self.title_reader if depends else self.title_gray if is_gray else ''
        title = self.title_batch if self._is_batch(labels) else title
        words = {'levels': join_items(sorted(select_ids(count_trained(labels)))), 'name': VOC_GRAYS}
        severity = INFO if depends else None
        yield self.report_in(facts, certainty, join('; ', texts), words, title, severity)

    def _judge(self, labels: LabelFacts) -> Optional[str]:
        """Return the certainty that palette indices are or were read as colors, or ``None`` without evidence."""
        maps = get_maps(labels)
        palette = maps.forms.get('palette8', 0)
        # Multi-channel files are also read as colors, and rightly so.
        others = sum(maps.forms.get(form, 0) for form in MANY_CHANNELS)
        if palette and maps.loaded_otherwise.get('colors', 0) > others:
            return PROVEN
        if self._is_black(labels) or self._depends_on_reader(labels):
            return POSSIBLE
        seen = select_ids(count_trained(labels)) - {0}
        invalid = set(labels.values) - {VOID}
        if not invalid or not seen:
            return None
        colored = seen <= CHANNELS or _are_grays(seen)
        # The files show other indices.
        if palette and colored and not invalid <= set(count_stored(labels)):
            return PROVEN
        if _are_grays(seen):
            return PROVEN
        # One class has one gray; 38 is an unlikely choice by hand.
        if labels.histogram and seen == {38} and labels.num_classes == 2:
            return PROVEN
        # A gray picture would have as many levels as classes; a channel of the colors has four in total.
        if self._is_batch(labels) and seen <= CHANNELS and labels.num_classes > len(CHANNELS) + 2:
            return PROVEN
        # A full count shows whether there is one gray level per class (MG125).
        is_counted = bool(labels.histogram) or bool(maps.raw)
        return LIKELY if not is_counted and seen <= {32, 64, 96, 128, 160, 192, 224} and len(seen) >= 2 else None

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        if self._depends_on_reader(labels):
            return
        loaders = [t for t in find_transforms(facts.config) if t.name == 'LoadAnnotations'] if facts.config else []
        places = tuple(
            (t.place('imdecode_backend'), 'pillow') for t in loaders if t.get('imdecode_backend') != 'pillow'
        )
        ids = select_ids(list_stored_values(facts)) - {0}
        if get_maps(labels).forms.get('palette8'):
            if places:
                yield Edit('Read the label files with Pillow in all splits.', config=places)
            yield from convert_files(facts, 'Rewrite the files as plain index images.')
            return
        name, table = _match_palette(facts, labels)
        if not name and ids and ids <= set(GRAYS):
            name, table = VOC_GRAYS, {value: GRAYS[value] for value in sorted(ids)}
        if name:
            void = [value for value, label in table.items() if label == VOID]
            moved = {value: label for value, label in table.items() if value != label}
            yield from renumber(facts, moved, Message(_CONVERTED, name=name), void)

    def _depends_on_reader(self, labels: LabelFacts) -> bool:
        """True if the indices of palette files are valid labels, and the reader of the files is unknown."""
        is_unknown = not labels.has_config and not self._is_black(labels)
        return 'palette8' in get_maps(labels).forms and is_unknown and not set(labels.values) - {VOID}

    def _is_black(self, labels: LabelFacts) -> bool:
        maps = get_maps(labels)
        return bool(maps.black_palettes) and not maps.loaded_otherwise.get('colors')

    def _is_batch(self, labels: LabelFacts) -> bool:
        """True if the facts come from a batch of tensors, not from files."""
        return not labels.files and not get_maps(labels).forms


def _are_grays(seen: AbstractSet[int]) -> bool:
    """Return True if all values are grays of VOC's palette, and at least two belong to labels 1 to 6."""
    return seen <= set(GRAYS) and len(seen & FIRST_GRAYS) >= 2
