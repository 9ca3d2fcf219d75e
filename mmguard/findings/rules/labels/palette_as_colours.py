from __future__ import annotations

from typing import AbstractSet, Dict, FrozenSet, Iterator, Optional

from mmguard.config.parts import transforms
from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import ERROR, INFO, LIKELY, POSSIBLE, PROVEN, WARNING, Finding
from mmguard.findings.known_sets import GRAYS_OF, voc_colour
from mmguard.findings.map_edits import convert_files, list_stored_values, renumber
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import MANY_CHANNELS, VOID, has_config, ids_of, is_whole, listing, maps_of, stored, trained

VOC = 'VOC (labelme)'
_COLOURS = [voc_colour(label) for label in range(1, 64)]
#: What a palette of VOC becomes when it is read as colours: one channel of it, or its gray.
CHANNELS: FrozenSet[int] = frozenset(value for colour in _COLOURS for value in colour if value)
#: One channel of the first 64 colours, without 0.
FEW = frozenset({64, 128, 192})
GRAYS: FrozenSet[int] = frozenset(GRAYS_OF[VOC])
#: Of the first six labels: what makes the grays of VOC unmistakable.
FIRST_GRAYS: FrozenSet[int] = frozenset({38, 75, 113, 14, 15, 52, 53, 89, 90})
#: So many grays of another palette make that one unmistakable.
UNMISTAKABLE = 4


class PaletteReadAsColours(DataRule):
    """Palette PNGs whose colours are read in place of their indices."""

    code = 'MG121'
    needs = ()
    summary = 'Palette PNGs are read as colours, or were saved so, without their indices.'
    title = 'Palette PNGs are read as colours: their indices are right, the loader loses them.'
    title_black = 'The palette of the files is all black: a loader of indices sees labels, a loader of colours only 0.'
    title_reader = 'The files have a palette: they hold labels only where their indices are read.'
    title_gray = 'The files hold the gray of the colours of a palette: its indices are gone.'
    title_batch = (
        'The values look like the colours of a palette ({name}), or their gray, instead of its indices: {levels}.'
    )
    why = 'cv2.imread replaces each index by its colour (128, 64, 192, ...), or the gray of it (38, 75, 113, ...).'
    example = Example(
        wrong='cv2.imread(path, 0) of a palette PNG',
        right='np.array(Image.open(path))',
    )
    limits = 'Without the files it goes by the values only: gray levels chosen by hand may be the same.'
    advice = (
        "Read the indices: `dict(type='LoadAnnotations', imdecode_backend='pillow')`, in your own code "
        '`np.array(Image.open(path))` without `.convert()`. If the files are gray by now, their palette is gone: '
        'export them again as palette or index PNGs, or map each gray level to its class with a label_map.'
    )
    pytorch = (
        'If the files are palette PNGs, read their indices: np.array(Image.open(path)), not cv2.imread or '
        '.convert("L"). Do not map levels to classes: several colours share one.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        maps = maps_of(facts)
        palette = maps.forms.get('palette8', 0)
        # Files of several channels are read as colours, too, and rightly so.
        others = sum(maps.forms.get(form, 0) for form in MANY_CHANNELS)
        if palette and maps.loaded_otherwise.get('colours', 0) > others:
            return PROVEN
        if self._is_black(facts) or self._depends_on_reader(facts):
            return POSSIBLE
        seen = ids_of(trained(facts)) - {0}
        invalid = set(facts.values) - {VOID}
        if not invalid or not seen:
            return None
        coloured = seen <= CHANNELS or (bool(_find_palette(seen)) and len(seen) >= 2)
        # The files show that their indices are others.
        if palette and coloured and not invalid <= set(stored(facts)):
            return PROVEN
        if _find_palette(seen):
            return PROVEN
        # One class has one gray; a numbering by hand does not choose 38.
        if is_whole(facts) and seen == {38} and facts.num_classes == 2:
            return PROVEN
        # Levels of a gray picture would be as many as classes; a channel of the colours has four for all of them.
        if self._is_batch(facts) and seen <= FEW and facts.num_classes > len(FEW) + 2:
            return PROVEN
        # A full count says whether they are the gray levels of as many classes (MG125).
        is_counted = is_whole(facts) or bool(maps.raw)
        return LIKELY if not is_counted and seen <= {32, 64, 96, 128, 160, 192, 224} and len(seen) >= 2 else None

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        labels = facts.labels
        if labels is None or self._depends_on_reader(labels):
            return
        loaders = [t for t in transforms(facts.config) if t.name == 'LoadAnnotations'] if facts.config else []
        places = tuple((t.at('imdecode_backend'), 'pillow') for t in loaders if t.get('imdecode_backend') != 'pillow')
        ids = ids_of(dict.fromkeys(list_stored_values(facts), 1))
        if maps_of(labels).forms.get('palette8'):
            if places:
                yield Edit('Read them with Pillow, in the pipelines of all splits.', SAFE, config=places)
            yield from convert_files(facts, 'Rewrite the files as plain index images.', SAFE)
        elif ids - {0} and (ids - {0} <= GRAYS or _find_palette(ids - {0})):
            name = _find_palette(ids - {0}) or VOC
            table = {value: GRAYS_OF[name][value] for value in sorted(ids - {0})}
            if 0 in ids and name != VOC:
                table[0] = VOID
            yield from renumber(facts, table, ASKS, f'Were they drawn in the palette of {name}, and made gray?')

    def choose_title(self, facts: LabelFacts) -> str:
        if self._is_black(facts):
            return self.title_black
        if self._is_batch(facts):
            return self.title_batch
        if self._depends_on_reader(facts):
            return self.title_reader
        return self.title_gray if self._is_gray(facts) else self.title

    def describe(self, facts: LabelFacts) -> Dict[str, str]:
        levels = ids_of(trained(facts))
        return {'levels': listing(sorted(levels)), 'name': _find_palette(levels - {0}) or VOC}

    def severity_of(self, facts: LabelFacts) -> str:
        if self._is_black(facts):
            return WARNING
        return INFO if self._depends_on_reader(facts) else ERROR

    def _depends_on_reader(self, facts: LabelFacts) -> bool:
        """True if the indices are labels, and what reads the files is not known."""
        is_unknown = not has_config(facts) and not self._is_black(facts)
        return 'palette8' in maps_of(facts).forms and is_unknown and not set(facts.values) - {VOID}

    def _is_black(self, facts: LabelFacts) -> bool:
        maps = maps_of(facts)
        return bool(maps.black_palettes) and not maps.loaded_otherwise.get('colours')

    def _is_batch(self, facts: LabelFacts) -> bool:
        """True if no file was read."""
        return not facts.files and not maps_of(facts).forms

    def _is_gray(self, facts: LabelFacts) -> bool:
        maps = maps_of(facts)
        seen = ids_of(stored(facts)) - {0}
        is_known = bool(seen) and seen <= set(GRAYS_OF[_find_palette(seen) or VOC])
        return bool(maps.forms) and not maps.forms.get('palette8') and is_known

    def evidence(self, facts: LabelFacts) -> str:
        maps = maps_of(facts)
        if self._is_black(facts):
            return f'{maps.black_palettes:,} of {facts.files:,} files; values {listing(sorted(stored(facts)))}'
        texts = [facts.evidence] if facts.values else []
        if maps.forms.get('palette8'):
            texts.append(f'{maps.forms["palette8"]:,} palette PNGs')
        if maps.loaded_otherwise.get('colours'):
            texts.append(f'{maps.loaded_otherwise["colours"]:,} files that the loader reads as colours')
        return '; '.join(texts)


def _find_palette(seen: AbstractSet[int]) -> str:
    """Return the palette whose grays these values unmistakably are, or nothing."""
    if seen <= GRAYS and len(seen & FIRST_GRAYS) >= 2:
        return VOC
    others = [name for name, table in GRAYS_OF.items() if seen <= set(table) and len(seen) >= UNMISTAKABLE]
    return others[0] if others else ''
