from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Set

from mmguard.config.parts import datasets, palette_of
from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import LIKELY, PROVEN, Finding
from mmguard.findings.map_edits import converted_files, splits_of, stored_in_all
from mmguard.findings.palettes import CITYSCAPES, VOC, Colour
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.views import MANY_CHANNELS, VOID, as_map, knows_classes, listing, maps_of, named_like
from mmguard.text.words import counted

#: Colours that the advice lists.
FEW_COLOURS = 6
BLACK = (0, 0, 0)
#: Void, and a colour or two that somebody drew by mistake.
FEW_MORE = 3


class StoredAsColours(DataRule):
    """More than one channel."""

    code = 'MG120'
    needs = ('maps',)
    summary = 'Label files have more than one channel ({forms}): colours, not class indices.'
    why = (
        'A loss wants one integer per pixel: the shapes do not fit, or the channels are read as gray and every colour '
        'becomes some number. PALETTE of a data set is for drawing, it never decodes files.'
    )
    advice = (
        'Turn colours into indices, one channel, PNG: '
        '`label = np.full(rgb.shape[:2], 255, np.uint8)`, then for each class '
        '`label[(rgb == colour).all(-1)] = index`. If all channels are equal or only alpha is in excess, keep the '
        'first: `label = rgb[..., 0]`.'
    )
    alpha = (
        'Alpha says nothing about classes: keep the first channel, `label = np.array(Image.open(path))[..., 0]`, and '
        'save it as PNG of one channel (mode L); then scan again.'
    )
    equal = 'All channels are equal: keep the first, `label = rgb[..., 0]`, and save it as PNG.'
    white = (
        'All channels are equal, and hold 0 and 255: keep the first, as 0 and 1, and save it as PNG: '
        '`label = (rgb[..., 0] > 127).astype(np.uint8)`.'
    )
    levels = (
        'All channels are equal, and hold gray levels, one per class: keep the first and map them, '
        '`label = np.vectorize({pairs}.get)(rgb[..., 0]).astype(np.uint8)`, and save it as PNG. The map assumes that '
        'the levels ascend with the classes: check it against one image.'
    )
    single = (
        'Only the {channel} channel says something, and it holds class indices: keep it, '
        '`label = rgb[..., {place}]`, and save it as PNG.'
    )
    lossy = (
        'They are JPEG, too: compression mixed the colours, so no colour is exact any more. Export them anew as PNG '
        'with class indices. If only these are left, take the nearest colour of your palette (classes x 3): '
        '`label = ((rgb[:, :, None].astype(int) - palette) ** 2).sum(-1).argmin(-1).astype(np.uint8)`; check the edges.'
    )
    many = (
        'There are more colours ({number}) than classes ({num_classes}), so a colour is no class. Either they number '
        'instances or panoptic segments (COCO panoptic: id = R + 256 G + 65536 B, its category stands in '
        'segments_info of the JSON): make label maps of classes from them, '
        '`label[ids == segment["id"]] = label_of[segment["category_id"]]`. Or edges were drawn soft: export without '
        'antialiasing.'
    )
    table = (
        'Which class each colour is stands in the class list of the tool that drew them: {colours}. Write it down, '
        'the same table for all splits, and turn colours into indices with it, one channel, PNG: '
        '`label[(rgb == colour).all(-1)] = index`.'
    )
    otherwise = (
        'Look which class each colour is, in the class list of the tool that drew the files. One table must name every '
        'colour of every split: none of the known ones does.'
    )
    cityscapes = (
        "These are Cityscapes' colour images. Use the *_gtFine_labelTrainIds.png files: "
        "`seg_map_suffix='_gtFine_labelTrainIds.png'`."
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        if not self._forms(facts):
            return None
        # Gray all the same: that compression changed the values (MG136) is the greater harm.
        return LIKELY if maps_of(facts).lossy and self._is_gray(facts) else PROVEN

    def advise(self, facts: LabelFacts) -> str:
        if named_like(facts, 'gtfine_color', 'gtcoarse_color') or self._palette(facts) is CITYSCAPES:
            return self.cityscapes
        maps = maps_of(facts)
        if self._is_alpha(facts):
            return self.alpha
        if self._is_gray(facts):
            if set(maps.raw) == {0, VOID}:
                return self.white
            return self.levels if self._levels(facts) else self.equal
        if maps.lossy and not maps.colours:
            return self.lossy
        if self._channel(facts) is not None:
            return self.single
        if knows_classes(facts) and len(maps.colours) > facts.num_classes + FEW_MORE and not self._palette(facts):
            return self.many
        return self.table if maps.colours else self.advice

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        labels = facts.labels
        if labels is None:
            return
        maps = maps_of(labels)
        if self._is_gray(labels) or self._is_alpha(labels):
            yield from self._of_equal_channels(facts, labels)
            return
        colours = {colour for split in splits_of(facts) for colour in maps_of(split).colours}
        if maps.lossy or not colours:
            return
        title, known = 'Rewrite the files, each colour as the index of its class.', self._table(facts, colours)
        if known:
            clear = colours <= set(known)
            others = {} if clear else dict.fromkeys(colours - set(known), VOID)
            question = '' if clear else f'Is {listing(sorted(others))} what nobody labelled?'
            if set(known) <= set(CITYSCAPES):
                title = 'Name the *_gtFine_labelTrainIds.png files if they were made, or rewrite these as indices.'
            yield from converted_files(facts, title, SAFE if clear else ASKS, question, colours={**known, **others})
        elif self._channel(labels) is not None:
            place = self._channel(labels) or 0
            table = {colour: colour[place] for colour in sorted(colours)}
            title = f'Keep one channel, `label = rgb[..., {place}]`.'
            yield from converted_files(facts, title, ASKS, 'Is it the number of the class?', colours=table)
        elif len(colours) == 2 and BLACK in colours and (not knows_classes(labels) or labels.num_classes == 2):
            # Any other number of colours leaves open which class is which.
            table = {colour: int(colour != BLACK) for colour in sorted(colours)}
            yield from converted_files(facts, title, ASKS, 'Is black the background?', colours=table)

    def _of_equal_channels(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        values = sorted(stored_in_all(facts))
        if self._is_alpha(labels) and not set(values) <= {*range(labels.num_classes), labels.ignore_index}:
            return  # one step of two: without alpha another fault shows
        if values == [0, VOID]:
            question = 'Is white the object, and not what nobody labelled?'
            title = 'Keep the first channel, as 0 and 1, `label = (rgb[..., 0] > 127).astype(np.uint8)`.'
            yield from converted_files(facts, title, ASKS, question, label_map={VOID: 1})
        elif not self._levels(labels):
            yield from converted_files(facts, 'Keep the first channel, `label = rgb[..., 0]`.', SAFE)
        elif len(values) == labels.num_classes:
            table = {level: label for label, level in enumerate(values)}
            title = f'Keep the first channel, and map its levels, {as_map(table)}.'
            yield from converted_files(facts, title, ASKS, 'Do the levels ascend with the classes?', label_map=table)

    def _table(self, facts: Facts, colours: Set[Colour]) -> Dict[Colour, int]:
        """Colour -> label: as a file beside them declares them, the config names them, or a palette has all of them."""
        declared = {} if facts.labels is None else maps_of(facts.labels).declared
        if declared:
            return {colour: label for label, colour in enumerate(declared)}
        for dataset in datasets(facts.config) if facts.config is not None else ():
            palette = palette_of(dataset)
            table: Dict[Colour, int] = {}
            for label, colour in enumerate(palette):
                table.setdefault(colour, label)
            if len(set(table) & colours) >= 2:
                return table
        known = _palette_of(colours)
        names = [] if facts.labels is None else facts.labels.class_names
        if known is None or (known is CITYSCAPES and names and len(names) != len(set(CITYSCAPES.values()) - {VOID})):
            return {}
        classes = len(names) if facts.labels is None else facts.labels.num_classes
        return {colour: label for colour, label in known.items() if colour in colours or label < classes}

    def words(self, facts: LabelFacts) -> Dict[str, object]:
        ranked = sorted(maps_of(facts).colours, key=lambda colour: -maps_of(facts).colours[colour])
        colours = ', '.join(map(str, ranked[:FEW_COLOURS]))
        more = ', ...' if len(ranked) > FEW_COLOURS else ''
        forms = listing(MANY_CHANNELS[form] for form in self._forms(facts))
        place = self._channel(facts) or 0
        return {
            'forms': forms,
            'colours': f'{colours}{more}',
            'number': len(ranked),
            'place': place,
            'pairs': as_map({level: label for label, level in enumerate(self._levels(facts))}),
            'channel': ('red', 'green', 'blue')[place],
        }

    def evidence(self, facts: LabelFacts) -> str:
        forms = self._forms(facts)
        seen = listing(f'{counted(count, "file")} with {MANY_CHANNELS[form]}' for form, count in forms.items())
        declared = maps_of(facts).declared
        unknown = sorted(set(maps_of(facts).colours) - set(declared)) if declared else []
        also = f'; labelmap.txt declares {counted(len(declared), "class")}' if declared else ''
        return f'{seen}{also}' + (f', and not {listing(unknown, FEW_COLOURS)}' if unknown else '')

    def files(self, facts: LabelFacts) -> List[str]:
        of_forms = [file for form in self._forms(facts) for file in maps_of(facts).form_examples.get(form, ())]
        return of_forms or super().files(facts) or named_like(facts, '')

    def _forms(self, facts: LabelFacts) -> Dict[str, int]:
        return {form: n for form, n in maps_of(facts).forms.items() if form in MANY_CHANNELS and n > 0}

    def _is_gray(self, facts: LabelFacts) -> bool:
        return maps_of(facts).gray_in_colour >= sum(self._forms(facts).values())

    def _levels(self, facts: LabelFacts) -> List[int]:
        """The gray levels, if they are too high for class indices and no more than classes."""
        values = sorted(maps_of(facts).raw)
        high = knows_classes(facts) and values and values[-1] >= facts.num_classes and len(values) <= facts.num_classes
        return values if high and values[0] == 0 and min(b - a for a, b in zip(values, values[1:])) >= 8 else []

    def _channel(self, facts: LabelFacts) -> Optional[int]:
        """The only channel that is not 0 throughout, where it holds what can be class indices."""
        colours = maps_of(facts).colours
        used = [place for place in range(3) if any(colour[place] for colour in colours)]
        if len(used) != 1 or not knows_classes(facts):
            return None
        values = {colour[used[0]] for colour in colours} - {0, VOID}
        return used[0] if values and max(values) < facts.num_classes else None

    def _is_alpha(self, facts: LabelFacts) -> bool:
        """Whether all files are gray with an alpha channel: the labels are in the first."""
        return set(maps_of(facts).forms) == {'gray_alpha'} and bool(maps_of(facts).raw)

    def _palette(self, facts: LabelFacts) -> Optional[Dict[Colour, int]]:
        return _palette_of(set(maps_of(facts).colours))


def _palette_of(colours: Set[Colour]) -> Optional[Dict[Colour, int]]:
    """The known palette that all colours are of."""
    for palette in (CITYSCAPES, VOC):
        # Pure red on black is a rider of Cityscapes, too.
        classes = [colour for colour in colours & set(palette) if palette[colour] != VOID]
        if len(classes) >= 2 and colours <= set(palette):
            return palette
    return None
