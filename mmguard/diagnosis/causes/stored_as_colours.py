from __future__ import annotations

from typing import Dict, List, Optional

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.palettes import CITYSCAPES, VOC, Colour
from mmguard.diagnosis.views import listing, maps_of, named_like

#: Form -> what it is.
MANY_CHANNELS = {'rgb': '3 channels', 'rgba': '4 channels (with alpha)', 'gray_alpha': 'gray with an alpha channel'}
#: Colours that the advice lists.
FEW_COLOURS = 6


class StoredAsColours(Cause):
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
    equal = 'All channels are equal: keep the first, `label = rgb[..., 0]`, and save it as PNG.'
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
        return 0.96 if self._forms(facts) else 0.0

    def advise(self, facts: LabelFacts) -> str:
        if named_like(facts, 'gtfine_color', 'gtcoarse_color') or self._palette(facts) is CITYSCAPES:
            return self.cityscapes
        maps = maps_of(facts)
        if maps.gray_in_colour >= sum(self._forms(facts).values()):
            return self.equal
        return self.table if maps.colours else self.advice

    def words(self, facts: LabelFacts) -> Dict[str, str]:
        ranked = sorted(maps_of(facts).colours, key=lambda colour: -maps_of(facts).colours[colour])
        index = self._palette(facts) or {colour: place for place, colour in enumerate(ranked)}
        colours = ', '.join(f'{colour}: {index[colour]}' for colour in ranked[:FEW_COLOURS])
        more = ', ...' if len(ranked) > FEW_COLOURS else ''
        forms = listing(MANY_CHANNELS[form] for form in self._forms(facts))
        return {'forms': forms, 'colours': f'{{{colours}{more}}}'}

    def evidence(self, facts: LabelFacts) -> str:
        forms = self._forms(facts)
        return listing(f'{count:,} files with {MANY_CHANNELS[form]}' for form, count in forms.items())

    def files(self, facts: LabelFacts) -> List[str]:
        return super().files(facts) or named_like(facts, '')

    def _forms(self, facts: LabelFacts) -> Dict[str, int]:
        return {form: n for form, n in maps_of(facts).forms.items() if form in MANY_CHANNELS and n > 0}

    def _palette(self, facts: LabelFacts) -> Optional[Dict[Colour, int]]:
        """The known palette that all colours are of."""
        colours = set(maps_of(facts).colours)
        for palette in (CITYSCAPES, VOC):
            if len(colours & set(palette)) >= 2 and colours <= set(palette):
                return palette
        return None
