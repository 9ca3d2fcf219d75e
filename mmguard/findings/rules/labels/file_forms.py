"""Rules about label files that have more or fewer than 8 bits, or that contain fractions."""

from __future__ import annotations

from dataclasses import replace
from typing import Iterable, Iterator

from mmguard.facts.labels import LabelFacts
from mmguard.findings.edits import Edit
from mmguard.findings.file_edits import convert_files, list_stored_values
from mmguard.findings.finding import ERROR, LIKELY, PROVEN, WARNING, Finding
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import as_map, count_stored, count_trained, get_maps, join_items, rise_evenly

#: White in a 16-bit file.
WHITE = 65535
WIDE = ('gray16', 'gray32')


class NotEightBits(DataRule):
    code = 'MG122'
    follows = ('MG103', 'MG106', 'MG107', 'MG116', 'MG121', 'MG125', 'MG137')
    aliases = ('MG151',)
    needs = ('maps',)
    summary = 'Label files have more or fewer than 8 bits; loaders change their values.'
    title = 'Label files have 16 bits or more, so an 8-bit reader returns other labels.'
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
    limits = 'Only the loaders of mmseg and OpenCV are known.'
    advice = (
        'Save class indices 0..{last} with 8 bits (`Image.fromarray(label.astype(np.uint8)).save(path)`), {void} for '
        '"no data" of a GIS (below 0), and 1 for white (65535) in a mask. Replace instance files (class times 1000 or '
        '256, plus a number) with the semantic files.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        maps = get_maps(labels)
        values = {**labels.values, **{value: count for value, count in maps.raw.items() if value > 255}}
        if maps.loaded_otherwise.get('scaled'):
            before, after = join_items(sorted(count_stored(labels))), join_items(sorted(count_trained(labels)))
            evidence = f'{maps.loaded_otherwise["scaled"]:,} files; values as stored: {before}; as loaded: {after}'
            yield self.report_in(facts, PROVEN, evidence, title=self.title_few, values=values)
            return
        forms = [form for form in WIDE if maps.forms.get(form)]
        becomes_zero = set(maps.raw) != {0} and set(labels.histogram) == {0}
        wrapped = maps.loaded_otherwise.get('wrapped', 0)
        is_proven = wrapped or (forms and maps.raw and becomes_zero)
        # mmseg reads these correctly; other loaders are unknown.
        if not is_proven and (not forms or labels.has_config or max(maps.raw, default=0) >= 256):
            return
        texts = [f'{maps.forms[form]:,} files of {form[4:]} bits' for form in forms]
        wide = {value: value % 256 for value in sorted(maps.raw) if value > 255}
        if wide:
            texts.append(f'values as stored and as loaded: {as_map(wide, 6)}')
        elif maps.raw:
            texts.append(f'values as stored: {join_items(sorted(maps.raw))}')
        evidence = '; '.join(texts) or f'{wrapped:,} files are loaded modulo 256'
        certainty, severity = (PROVEN, ERROR) if is_proven else (LIKELY, WARNING)
        follow = tuple(code for code in self.follows if code not in ('MG103', 'MG121'))
        yield self.report_in(facts, certainty, evidence, severity=severity, values=values, follows=follow)

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        values = sorted(list_stored_values(facts))
        if not values:
            return
        title = 'Rewrite the files with 8 bits.'
        if get_maps(labels).loaded_otherwise.get('scaled'):
            yield from convert_files(facts, title)
        elif values == [0, WHITE]:
            yield from convert_files(facts, title, 'Is white the object?', label_map={WHITE: 1})
        elif values[0] >= 0 and values[-1] <= 255:
            yield from convert_files(facts, title)
        elif len(values) == labels.num_classes and rise_evenly(values):
            question = f'Are {join_items(values)} the classes, in the order of your class list?'
            table = {value: label for label, value in enumerate(values)}
            yield from convert_files(facts, title, question, label_map=table)


TOLERANCE = 1e-4


class Fractions(DataRule):
    code = 'MG123'
    follows = ('MG107', 'MG122', 'MG135')
    needs = ('maps',)
    summary = 'Labels are fractions: an image transform (ToTensor divides by 255) or an averaging resize changed them.'
    why = 'If fractions are cast to integers, nearly all become 0: nothing crashes, but only class 0 is learned.'
    example = Example(wrong='mask = ToTensor()(mask)', right='mask = torch.as_tensor(np.array(mask)).long()')
    limits = 'Class numbers divided by 255 can look like probabilities: each edit asks you which they are.'
    advice = (
        'Turn masks into tensors with `torch.as_tensor(np.array(mask)).long()`, not with ToTensor, and resize only '
        'with nearest-neighbor interpolation. Save files with values k/255 again as `np.round(label * '
        '255).astype(np.uint8)`; apply a threshold to files of probabilities.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        maps = get_maps(labels)
        is_proven = maps.fractions or maps.loaded_otherwise.get('truncated')
        small = maps.forms.get('float', 0) and maps.raw and max(maps.raw) <= 1 < labels.num_classes - 1
        if not is_proven and not small:
            return
        values = sorted(maps.fractions)
        texts = [f'{maps.forms.get("float", 0):,} float files']
        if values:
            texts.append(f'values {join_items(f"{value:.5g}" for value in values)}')
            if _are_of_255(values):
                texts.append(f'which are {join_items(f"{round(value * 255)}/255" for value in values)}')
        files = maps.form_examples.get('float', [])
        yield self.report_in(facts, PROVEN if is_proven else LIKELY, ', '.join(texts), files=files)

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        fractions = get_maps(labels).fractions
        if _are_of_255(fractions):
            question = 'Were the class indices divided by 255?'
            note = 'Read masks with `torch.as_tensor(np.array(mask)).long()`: ToTensor is for images.'
            for edit in convert_files(facts, 'Multiply the values in the files by 255.', question, scale=255):
                yield replace(edit, notes=(*edit.notes, note))
        if labels.num_classes == 2 and all(0 < value < 1 for value in fractions):
            question = 'Is each value the probability of the object?'
            yield from convert_files(facts, 'Rewrite the files with 0 and 1, by a threshold.', question, threshold=0.5)


def _are_of_255(fractions: Iterable[float]) -> bool:
    """Return True if every value is k / 255, for an integer k between 0 and 255."""
    scaled = [value * 255 for value in fractions]
    return bool(scaled) and all(0 < s < 255 and abs(s - round(s)) < 255 * TOLERANCE for s in scaled)
