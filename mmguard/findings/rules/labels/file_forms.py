"""Files that are not 8-bit label maps: photographs, other bit depths, fractions."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterable, Iterator, List, Optional, Sequence

from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import LIKELY, PROVEN
from mmguard.findings.known_sets import CITYSCAPES_TRAIN_IDS, set_of_numbers
from mmguard.findings.map_edits import convert_files, list_stored_values, set_places
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import (
    VOID,
    as_map,
    count_stored,
    count_trained,
    find_files_named,
    has_config,
    listing,
    maps_of,
    share,
)

PHOTO = ('rgb', 'rgba')
PLAIN, DEEP = ('gray8', 'palette8', 'bool'), ('gray16', 'gray32', 'float')
#: Number of values beyond 8 bits; ids of a few classes or instances have fewer.
MANY_VALUES = 200
INDEX = ('gray8', 'palette8', 'gray16', 'bool')
#: Of all channel values the 32 most frequent: of drawn colours they are nearly all, even after JPEG; of photographs
#: a part.
FREQUENT, DRAWN = 32, 0.7


class FoldersSwapped(DataRule):
    """Photographs instead of label maps, or among them."""

    code = 'MG131'
    shows_values = False
    needs = ('maps',)
    summary = 'The label files are photographs.'
    title_swapped = 'The label files are photographs; image and label folders seem to be swapped.'
    title_mixed = 'There are images among the label files.'
    why = 'Training takes the brightness of a photograph for its classes.'
    example = Example(wrong="seg_map_path='images'", right="seg_map_path='labels'")
    limits = 'Gray photographs of 8 bits among label maps are not detected.'
    advice = (
        'Name the folder of the label maps, not that of the images: '
        "`data_prefix=dict(img_path='images', seg_map_path='labels')`, or `mmguard scan labels --images images`. If "
        'images are in the folder of the labels, move them out (names, ending or size show which), or read only the '
        'labels: `seg_map_suffix` of the data set, `--suffix` of a scan.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        maps = maps_of(facts)
        photos = share(sum(maps.forms.get(form, 0) for form in PHOTO), sum(maps.forms.values()))
        if photos < 0.9:
            return PROVEN if self._list_image_forms(facts) else None
        return PROVEN if self._is_swapped(facts) or self._is_photographed(facts) else None

    def choose_title(self, facts: LabelFacts) -> str:
        if self._list_image_forms(facts):
            return self.title_mixed
        return self.title_swapped if self._is_swapped(facts) else self.summary

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        if self._list_image_forms(labels):
            return
        yield from set_places(self, facts, _files, elsewhere=True)

    def _list_image_forms(self, facts: LabelFacts) -> List[str]:
        """List the forms of files among label maps that are images: photographs, or intensities beyond 8 bits."""
        maps = maps_of(facts)
        plain = sum(maps.forms.get(form, 0) for form in PLAIN)
        photos = [form for form in PHOTO if maps.forms.get(form)]
        if not plain or (photos and (maps.colours or maps.gray_in_colour)):
            return []
        wide = [form for form in DEEP if maps.forms.get(form)]
        many = sum(1 for value in maps.raw if not 0 <= value <= VOID) >= MANY_VALUES
        return photos + (wide if many else [])

    def files(self, facts: LabelFacts) -> List[str]:
        strangers = self._list_image_forms(facts)
        if not strangers:
            return super().files(facts)
        return [file for form in strangers for file in maps_of(facts).form_examples.get(form, [])]

    def _is_swapped(self, facts: LabelFacts) -> bool:
        maps = maps_of(facts)
        indices = share(sum(maps.image_forms.get(form, 0) for form in INDEX), sum(maps.image_forms.values()))
        return indices >= 0.9 and not maps.image_lossy

    def _is_photographed(self, facts: LabelFacts) -> bool:
        """Return True if every file has many colours, with values distributed as in photographs."""
        counts = sorted((n for value, n in facts.histogram.items() if value != VOID), reverse=True)
        spread = share(sum(counts[:FREQUENT]), sum(counts)) < DRAWN
        return bool(counts) and spread and not maps_of(facts).colours and not maps_of(facts).gray_in_colour

    def evidence(self, facts: LabelFacts) -> str:
        maps = maps_of(facts)

        def count(forms: dict) -> str:
            return ', '.join(f'{number:,} {form}' for form, number in sorted(forms.items()))

        images = f'; images: {count(maps.image_forms)}' if maps.image_forms else ''
        return f'label files: {count(maps.forms)} ({maps.lossy:,} JPEG){images}'


def _files(facts: LabelFacts) -> List[str]:
    return [file for files in maps_of(facts).form_examples.values() for file in files]


#: All bits of 16.
WHITE = 65535
WIDE = ('gray16', 'gray32')


class NotEightBits(DataRule):
    """Label files of 16 bits or more, and PNGs of 1, 2 or 4 bits."""

    code = 'MG122'
    aliases = ('MG151',)
    needs = ('maps',)
    summary = 'Label files have more bits than 8, or fewer; loaders change their values.'
    title = 'Label files have 16 bits or more; a reader of 8 bits sees other labels.'
    title_few = 'Label files have fewer than 8 bits: the loader stretches their values over 0 to 255.'
    why = (
        "mmseg's loader keeps the value of a 16-bit file modulo 256 (261 becomes 5); OpenCV's default divides it by "
        '256 (1 becomes 0). Fewer bits are stretched to 0..255: class 1 becomes 17 in a 4-bit file, 85 with 2 bits, '
        'and 255, which is ignored, with 1 bit.'
    )
    example = Example(
        wrong='Image.fromarray(label.astype(np.uint16)).save(path)',
        right='Image.fromarray(label.astype(np.uint8)).save(path)',
    )
    limits = 'It knows how mmseg and OpenCV load such files; other loaders are not known.'
    advice = (
        'Find out what a value means (the program that wrote the files says it), and save class indices 0..{last} '
        'with 8 bits: `Image.fromarray(label.astype(np.uint8)).save(path)`. Map values below 0 ("no data" of a GIS) '
        'to {void}, and the white (65535) of a drawn mask to 1. Instance files hold the class times 1000 (Cityscapes)'
        ' or 256 (KITTI), plus the number of the object: use the semantic files instead. More than 255 classes need a'
        ' loader of your own.'
    )

    def find_superseded(self, facts: LabelFacts) -> Sequence[str]:
        follow = super().find_superseded(facts)
        return follow if self._is_stretched(facts) else [code for code in follow if code not in ('MG103', 'MG121')]

    def choose_title(self, facts: LabelFacts) -> str:
        return self.title_few if self._is_stretched(facts) else self.title

    def _is_stretched(self, facts: LabelFacts) -> bool:
        return bool(maps_of(facts).loaded_otherwise.get('scaled'))

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        maps = maps_of(facts)
        if maps.loaded_otherwise.get('wrapped') or self._is_stretched(facts):
            return PROVEN
        if not any(maps.forms.get(form) for form in WIDE):
            return None
        if maps.raw and facts.histogram and set(maps.raw) != {0} and set(facts.histogram) == {0}:
            return PROVEN
        # mmseg reads these correctly; other loaders are unknown.
        return LIKELY if not has_config(facts) and max(maps.raw, default=0) < 256 else None

    def severity_of(self, facts: LabelFacts) -> str:
        return 'error' if self.certainty(facts) == PROVEN else 'warning'

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        values = sorted(list_stored_values(facts))
        if not values:
            return
        void = 255 if labels.ignore_index is None else labels.ignore_index
        negative = [value for value in values if value < 0]
        title = 'Rewrite the files with 8 bits.'
        if self._is_stretched(labels):
            yield from convert_files(facts, title, SAFE)
        elif values == [0, WHITE]:
            yield from convert_files(facts, title, ASKS, 'Is white the object?', label_map={WHITE: 1})
        elif negative and values[-1] <= 255:
            question = f'Is {listing(negative)} your void ("no data") value?'
            yield from convert_files(facts, title, ASKS, question, label_map=dict.fromkeys(negative, void))
        elif values[-1] <= 255:
            yield from convert_files(facts, title, SAFE)
        elif self._factor(labels) and labels.num_classes == len(set(CITYSCAPES_TRAIN_IDS.values()) - {255}):
            table = {
                value: CITYSCAPES_TRAIN_IDS.get(_decode_class(value, self._factor(labels)), 255) for value in values
            }
            question = 'Are these instance files of Cityscapes or KITTI, for the 19 classes of Cityscapes?'
            note = 'Files named *_gtFine_labelTrainIds.png, if they were made, can be read as they are.'
            for edit in convert_files(facts, title, ASKS, question, label_map=table):
                yield replace(edit, notes=(*edit.notes, note))
        elif len(values) == labels.num_classes and not self._factor(labels):
            question = f'Are the classes, in the order of your list, {listing(values)}?'
            table = {value: label for label, value in enumerate(values)}
            yield from convert_files(facts, title, ASKS, question, label_map=table)

    def _factor(self, facts: LabelFacts) -> int:
        """Return the factor of the class in a value: 1000 in Cityscapes, 256 in KITTI; 0: unknown."""
        wide = [value for value in maps_of(facts).raw if value > 255]
        if not wide or max(wide) > 65535:
            return 0
        if find_files_named(facts, '_instanceids') or (min(wide) >= 24_000 and max(wide) < 34_000):
            return 1000
        # Object numbers are small, so the low byte is not informative.
        low = max(value % 256 for value in wide)
        return 256 if low < 64 and len({value // 256 for value in wide}) > 1 else 0

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return {value: count for value, count in maps_of(facts).raw.items() if value > 255} or facts.values

    def evidence(self, facts: LabelFacts) -> str:
        maps = maps_of(facts)
        texts = [f'{maps.forms[form]:,} files of {form[4:]} bits' for form in WIDE if maps.forms.get(form)]
        if self._is_stretched(facts):
            before, after = listing(sorted(count_stored(facts))), listing(sorted(count_trained(facts)))
            return f'{maps.loaded_otherwise["scaled"]:,} files; values as stored: {before}; as loaded: {after}'
        wide = {value: value % 256 for value in sorted(maps.raw) if value > 255}
        if wide:
            texts.append(f'as stored, and as loaded: {as_map(wide, 6)}')
            known, number = set_of_numbers(set(maps.raw) - {VOID, WHITE})
            texts += [f'as many numbers as {known} has, {number}'] * bool(known)
        elif maps.raw:
            texts.append(f'values as stored: {listing(sorted(maps.raw))}')
        return '; '.join(texts) or f'{maps.loaded_otherwise.get("wrapped", 0):,} files are loaded modulo 256'


def _decode_class(value: int, factor: int) -> int:
    """Return the class encoded in a value of an instance file; a pixel without an object stores only the class."""
    return value // factor if value >= factor else value


TOLERANCE = 1e-4


class Fractions(DataRule):
    """Labels with decimals."""

    code = 'MG123'
    needs = ('maps',)
    summary = 'Labels are fractions: an image transform changed them (ToTensor divides by 255), or an average.'
    why = 'Cast to integers they are 0 nearly everywhere: nothing crashes, and only class 0 is learnt.'
    example = Example(wrong='mask = ToTensor()(mask)', right='mask = torch.as_tensor(np.array(mask)).long()')
    limits = 'Class numbers divided by 255 and probabilities can have the same values: its edits ask.'
    advice = (
        'Turn masks into tensors with `torch.as_tensor(np.array(mask)).long()`, not with ToTensor, and resize with '
        'nearest only. Files that hold k/255 are saved again as `np.round(label * 255).astype(np.uint8)`; files of '
        'probabilities need a threshold. If they are neither, export the labels again, as integers.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        maps = maps_of(facts)
        if maps.fractions or maps.loaded_otherwise.get('truncated'):
            return PROVEN
        small = maps.forms.get('float', 0) and maps.raw and max(maps.raw) <= 1 < facts.num_classes - 1
        return LIKELY if small else None

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        fractions = maps_of(labels).fractions
        if _are_of_255(fractions):
            question = 'Were the numbers of the classes divided by 255?'
            note = 'Read masks with `torch.as_tensor(np.array(mask)).long()`: ToTensor is for images.'
            for edit in convert_files(facts, 'Rewrite the files, times 255.', ASKS, question, scale=255):
                yield replace(edit, notes=(*edit.notes, note))
        if labels.num_classes == 2 and all(0 < value < 1 for value in fractions):
            question = 'Is each value the probability of the object?'
            yield from convert_files(facts, 'Rewrite the files with a threshold.', ASKS, question, threshold=0.5)

    def files(self, facts: LabelFacts) -> List[str]:
        return maps_of(facts).form_examples.get('float', [])

    def evidence(self, facts: LabelFacts) -> str:
        maps = maps_of(facts)
        values = sorted(maps.fractions)
        scaled = [value * 255 for value in values]
        texts = [f'{maps.forms.get("float", 0):,} float files']
        if values:
            texts.append(f'values {listing(f"{value:.5g}" for value in values)}')
            if _are_of_255(values):
                texts.append(f'which are {listing(f"{round(s)}/255" for s in scaled)}')
        return ', '.join(texts)


def _are_of_255(fractions: Iterable[float]) -> bool:
    """Return True if all values are k / 255."""
    scaled = [value * 255 for value in fractions]
    return bool(scaled) and all(0 < s < 255 and abs(s - round(s)) < 255 * TOLERANCE for s in scaled)
