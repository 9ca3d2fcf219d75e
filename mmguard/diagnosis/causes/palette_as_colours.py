from __future__ import annotations

from typing import Dict, FrozenSet

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.palettes import voc_colour
from mmguard.diagnosis.views import VOID, ids_of, maps_of, stored, trained

_COLOURS = [voc_colour(label) for label in range(1, 64)]
#: What a palette of VOC becomes when it is read as colours: one channel of it, or its gray.
CHANNELS: FrozenSet[int] = frozenset(value for colour in _COLOURS for value in colour if value)
GRAYS: FrozenSet[int] = frozenset(round(0.299 * r + 0.587 * g + 0.114 * b) for r, g, b in _COLOURS[:21])


class PaletteReadAsColours(Cause):
    """Palette PNGs hold indices; OpenCV shows the colours behind them."""

    code = 'MG121'
    needs = ()
    summary = 'Palette PNGs are read as colours: their indices are right, the loader loses them.'
    why = 'cv2.imread replaces each index by its colour (128, 64, 192, ...), or the gray of it (38, 75, 113, ...).'
    advice = (
        "Read them with Pillow: `dict(type='LoadAnnotations', imdecode_backend='pillow')`, in own code "
        '`np.array(Image.open(path))`, without `.convert()`. Or save plain 8-bit index images: '
        '`Image.fromarray(np.array(Image.open(path))).save(path)`.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        maps = maps_of(facts)
        palette = maps.forms.get('palette8', 0)
        if palette and maps.loaded_otherwise.get('colours'):
            return 0.97
        seen = ids_of(trained(facts)) - {0}
        invalid = set(facts.values) - {VOID}
        if not invalid or not seen:
            return 0.0
        coloured = seen <= CHANNELS or (seen <= GRAYS and len(seen) >= 2)
        # The files say that the indices behind are others.
        if palette and coloured and not invalid <= set(stored(facts)):
            return 0.95
        if seen <= GRAYS and len(seen & {38, 75, 113, 14, 52, 89}) >= 2:
            return 0.94
        return 0.7 if seen <= {32, 64, 96, 128, 160, 192, 224} and len(seen) >= 2 else 0.0

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
