from __future__ import annotations

from typing import Dict, List, Optional

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.palettes import CITYSCAPES, VOC, Colour
from mmguard.diagnosis.views import MANY_CHANNELS, VOID, as_map, knows_classes, listing, maps_of, named_like
from mmguard.words import counted

#: Colours that the advice lists.
FEW_COLOURS = 6
#: Void, and a colour or two that somebody drew by mistake.
FEW_MORE = 3


class StoredAsColours(Cause):
    """More than one channel."""

    code = 'MG120'
    explains = ('MG102', 'MG103', 'MG106', 'MG107', 'MG116', 'MG121', 'MG125', 'MG135', 'MG136')
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
        'Turn colours into indices, one channel, PNG: `label = np.full(rgb.shape[:2], 255, np.uint8)`, then '
        '`for colour, index in {colours}.items(): label[(rgb == colour).all(-1)] = index` with the numbers of your '
        'classes.'
    )
    cityscapes = (
        "These are Cityscapes' colour images. Use the *_gtFine_labelTrainIds.png files: "
        "`seg_map_suffix='_gtFine_labelTrainIds.png'`."
    )

    def likelihood(self, facts: LabelFacts) -> float:
        if not self._forms(facts):
            return 0.0
        # Gray all the same: that compression changed the values (MG136) is the greater harm.
        return 0.9 if maps_of(facts).lossy and self._is_gray(facts) else 0.96

    def advise(self, facts: LabelFacts) -> str:
        if named_like(facts, 'gtfine_color', 'gtcoarse_color') or self._palette(facts) is CITYSCAPES:
            return self.cityscapes
        maps = maps_of(facts)
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

    def words(self, facts: LabelFacts) -> Dict[str, object]:
        ranked = sorted(maps_of(facts).colours, key=lambda colour: -maps_of(facts).colours[colour])
        index = self._palette(facts) or {colour: place for place, colour in enumerate(ranked)}
        colours = ', '.join(f'{colour}: {index[colour]}' for colour in ranked[:FEW_COLOURS])
        more = ', ...' if len(ranked) > FEW_COLOURS else ''
        forms = listing(MANY_CHANNELS[form] for form in self._forms(facts))
        place = self._channel(facts) or 0
        return {
            'forms': forms,
            'colours': f'{{{colours}{more}}}',
            'number': len(ranked),
            'place': place,
            'pairs': as_map({level: label for label, level in enumerate(self._levels(facts))}),
            'channel': ('red', 'green', 'blue')[place],
        }

    def evidence(self, facts: LabelFacts) -> str:
        forms = self._forms(facts)
        return listing(f'{counted(count, "file")} with {MANY_CHANNELS[form]}' for form, count in forms.items())

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

    def _palette(self, facts: LabelFacts) -> Optional[Dict[Colour, int]]:
        """The known palette that all colours are of."""
        colours = set(maps_of(facts).colours)
        for palette in (CITYSCAPES, VOC):
            # Pure red on black is a rider of Cityscapes, too.
            classes = [colour for colour in colours & set(palette) if palette[colour] != VOID]
            if len(classes) >= 2 and colours <= set(palette):
                return palette
        return None
