from __future__ import annotations

from typing import Dict, FrozenSet

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.palettes import voc_colour
from mmguard.diagnosis.views import MANY_CHANNELS, VOID, as_map, ids_of, is_whole, maps_of, stored, trained

_COLOURS = [voc_colour(label) for label in range(1, 64)]
#: What a palette of VOC becomes when it is read as colours: one channel of it, or its gray.
CHANNELS: FrozenSet[int] = frozenset(value for colour in _COLOURS for value in colour if value)
GRAY_OF = [0.299 * r + 0.587 * g + 0.114 * b for r, g, b in _COLOURS[:21]]
#: Gray -> label: rounded as OpenCV and Pillow do, or cut off as older ones did. Where two labels share a gray (1 and
#: 16: 38), the first is meant more often.
LABEL_OF: Dict[int, int] = {}
for _label, _gray in enumerate(GRAY_OF, 1):
    LABEL_OF.setdefault(round(_gray), _label)
for _label, _gray in enumerate(GRAY_OF, 1):
    LABEL_OF.setdefault(int(_gray), _label)
GRAYS: FrozenSet[int] = frozenset(LABEL_OF)
#: Of the first six labels: what makes the grays of VOC unmistakable.
FIRST_GRAYS: FrozenSet[int] = frozenset({38, 75, 113, 14, 15, 52, 53, 89, 90})


class PaletteReadAsColours(Cause):
    """Palette PNGs hold indices; OpenCV shows the colours behind them."""

    code = 'MG121'
    explains = ('MG106', 'MG107', 'MG116', 'MG125')
    needs = ()
    summary = 'Palette PNGs are read as colours: their indices are right, the loader loses them.'
    why = 'cv2.imread replaces each index by its colour (128, 64, 192, ...), or the gray of it (38, 75, 113, ...).'
    advice = (
        "Read them with Pillow: `dict(type='LoadAnnotations', imdecode_backend='pillow')`, in own code "
        '`np.array(Image.open(path))`, without `.convert()`. Or save plain 8-bit index images: '
        '`Image.fromarray(np.array(Image.open(path))).save(path)`.'
    )

    converted = (
        'The files are gray by now: .convert("L"), or cv2.imread(path, 0), wrote the brightness of the palette. Export '
        'them anew as palette or index PNGs, or map the gray levels back, directly after LoadAnnotations: '
        "`dict(type='GuardSegLabels', num_classes={num_classes}, label_map={pairs})`."
    )

    def likelihood(self, facts: LabelFacts) -> float:
        maps = maps_of(facts)
        palette = maps.forms.get('palette8', 0)
        # Files of several channels are read as colours, too, and rightly so.
        others = sum(maps.forms.get(form, 0) for form in MANY_CHANNELS)
        if palette and maps.loaded_otherwise.get('colours', 0) > others:
            return 0.97
        seen = ids_of(trained(facts)) - {0}
        invalid = set(facts.values) - {VOID}
        if not invalid or not seen:
            return 0.0
        coloured = seen <= CHANNELS or (seen <= GRAYS and len(seen) >= 2)
        # The files say that the indices behind are others.
        if palette and coloured and not invalid <= set(stored(facts)):
            return 0.95
        if seen <= GRAYS and len(seen & FIRST_GRAYS) >= 2:
            return 0.94
        # Of one class there is one gray; whoever numbers by hand does not choose 38.
        if is_whole(facts) and seen == {38} and facts.num_classes == 2:
            return 0.92
        return 0.7 if seen <= {32, 64, 96, 128, 160, 192, 224} and len(seen) >= 2 else 0.0

    def advise(self, facts: LabelFacts) -> str:
        maps = maps_of(facts)
        gray = maps.forms and not maps.forms.get('palette8') and ids_of(stored(facts)) - {0} <= GRAYS
        return self.converted if gray else self.advice

    def words(self, facts: LabelFacts) -> Dict[str, str]:
        pairs = {value: LABEL_OF[value] for value in sorted(ids_of(stored(facts))) if value in LABEL_OF}
        return {'pairs': as_map(pairs)}

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return facts.values

    def evidence(self, facts: LabelFacts) -> str:
        maps = maps_of(facts)
        texts = [facts.evidence] if facts.values else []
        if maps.forms.get('palette8'):
            texts.append(f'{maps.forms["palette8"]:,} palette PNGs')
        if maps.loaded_otherwise.get('colours'):
            texts.append(f'{maps.loaded_otherwise["colours"]:,} files that the loader reads as colours')
        return '; '.join(texts)
