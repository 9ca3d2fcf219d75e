"""Rules about images and label files that are unpaired, missing, unreadable or of different size."""

from __future__ import annotations

import os
import re
from collections import Counter
from itertools import islice
from typing import Dict, Iterator, List, Sequence, Set, Tuple

from mmguard.config.parts import Part, find_datasets
from mmguard.facts.labels import LabelFacts
from mmguard.facts.volumes import CHANNELS, FORM, NO_IMAGE, NO_LABEL, STRANGER, UNREADABLE
from mmguard.files.containment import OUTSIDE_REASON
from mmguard.findings.edits import Edit
from mmguard.findings.file_edits import SUFFIX
from mmguard.findings.finding import ERROR, LIKELY, PROVEN, Finding
from mmguard.findings.rule import AnnotationRule, DataRule, Example, Facts, Rule
from mmguard.findings.rules.labels.records import NO_FOLDER_FAULT, WHOLE_FILE
from mmguard.findings.views import count_listed, get_annotations, get_maps, join_items
from mmguard.language import Message, join
from mmguard.text import quantity

#: Attribute of ``MapFacts``, or kind of fault of a volume -> (singular, plural).
FILE_NOUNS = {
    'missing_labels': ('image without a label file', 'images without a label file'),
    'missing_images': ('label file without an image', 'label files without an image'),
    'duplicates': ('name with two files', 'names with two files'),
    NO_LABEL: ('label file missing', 'label files missing'),
    CHANNELS: ('channel missing or left over', 'channels missing or left over'),
    NO_IMAGE: ('image missing', 'images missing'),
    STRANGER: ('file that nnU-Net does not see', 'files that nnU-Net does not see'),
}

#: Kinds of faults that stop nnU-Net.
ENDS = {NO_LABEL, CHANNELS}


class UnpairedFiles(DataRule):
    code = 'MG129'
    aliases = ('MG184',)
    shows_values = False
    kinds = ('pixels', 'voxels')
    needs = ()
    severity = 'warning'
    summary = 'Images and label files do not pair up.'
    title = 'Images and label files do not pair up: {number} without a partner, or with two.'
    title_none = 'No label file has the name that is expected for its image.'
    why = (
        'A missing label file ends the training at the iteration that draws its image (nnU-Net stops before the first '
        'iteration); of two files with the same stem, only one is read.'
    )
    example = Example(
        wrong="img_suffix='.jpg', seg_map_suffix='.png'; files 7.jpg and 7_mask.png",
        right="img_suffix='.jpg', seg_map_suffix='_mask.png'",
    )
    limits = 'Only names are compared: a pair may still show two different scenes.'
    advice = (
        'A label file must be named like its image, with `seg_map_suffix` in place of `img_suffix`: correct the '
        'suffixes and `data_prefix`, or add, remove or leave out (`ann_file=...`) single files. nnU-Net needs '
        '`imagesTr/CASE_0000.nii.gz`, one file per channel, and `labelsTr/CASE.nii.gz`.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        found, has_none = self._find_unpaired(labels), self._has_no_pair(labels)
        if not found:
            return
        parts = [
            join(': ', (quantity(number, *FILE_NOUNS[kind]), join_items(files, 3)))
            for kind, (number, files) in found.items()
        ]
        # An image without a label file ends a training; an extra label file does not.
        is_grave = (labels.has_config and 'missing_labels' in found) or found.keys() & ENDS
        files = [file for _, listed in found.values() for file in listed]
        if labels.volumes is not None:
            files = [fault.file for fault in labels.volumes.find_faults(*FILE_NOUNS)]
        yield self.report_in(
            facts,
            PROVEN if labels.volumes is not None or has_none else LIKELY,
            join('; ', parts),
            {'number': quantity(sum(number for number, _ in found.values()), 'name')},
            self.title_none if has_none else '',
            ERROR if is_grave else None,
            files=files,
        )

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        if self._has_no_pair(labels):
            yield from set_suffix(self, facts)

    def _has_no_pair(self, facts: LabelFacts) -> bool:
        """True if no image, of a config or of a scanned image folder, has a label file with a matching name."""
        maps = get_maps(facts)
        lacking = count_listed(maps, 'missing_labels') or count_listed(maps, 'missing_images')
        if facts.has_config:
            return bool(lacking) and not maps.forms
        labels = sum(maps.forms.values())
        return bool(labels) and count_listed(maps, 'missing_images') == labels

    def _find_unpaired(self, labels: LabelFacts) -> Dict[str, Tuple[int, List[str]]]:
        """Return {kind of fault: (number of files, first files)}; for volumes, each name is followed by its fault."""
        if labels.volumes is not None:
            faults = {kind: labels.volumes.find_faults(kind) for kind in FILE_NOUNS}
            texts = {kind: [f'{fault.file}: {fault.detail}' for fault in found] for kind, found in faults.items()}
            return {kind: (len(files), files) for kind, files in texts.items() if files}
        maps = get_maps(labels)
        return {
            kind: (count_listed(maps, kind), getattr(maps, kind))
            for kind in ('missing_labels', 'missing_images', 'duplicates')
            if count_listed(maps, kind)
        }


class SizeMismatch(DataRule):
    code = 'MG130'
    follows = ('MG152',)
    aliases = ('MG175',)
    shows_values = False
    kinds = ('pixels', 'instances')
    needs = ('maps.size_mismatches or annotations.size_mismatches',)
    summary = 'Labels differ in size from their images.'
    title = 'Label maps differ in size from their images: {number}.'
    title_swapped = 'Label maps have the height and width of their images swapped: {number}.'
    title_other = 'Label maps have neither the size nor the proportions of their images: {number}.'
    title_boxes = 'Images on disk differ in size from the annotations: {number}.'
    why = 'Crops of image and label show different regions, or the shapes differ in the loss; boxes are misplaced.'
    example = Example(
        wrong='image 2048 x 1024, label map 1024 x 512',
        right='cv2.resize(label, (2048, 1024), interpolation=cv2.INTER_NEAREST)',
    )
    limits = 'Only sizes are compared; a label of the right size may belong to another image.'
    advice = (
        'If the proportions are equal, scale the labels (maps with INTER_NEAREST, boxes by the size ratio); for '
        'swapped axes write `label.T` or remove the EXIF rotation. If the proportions differ, do not resize: use the '
        'images that were annotated.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        maps, of_boxes = get_maps(labels), labels.annotations
        found = maps.size_mismatches or get_annotations(labels).size_mismatches
        path, first, second = found[0]
        number = count_listed(maps, 'size_mismatches') or len(found)
        if of_boxes is not None:
            on_disk, written = (' x '.join(map(str, size[::-1])) for size in (first, second))
            sizes = f'{on_disk} on disk, {written} in the annotations'
            evidence = f'{len(found):,} of {of_boxes.sizes_compared:,} images compared, e.g. {path}: {sizes}'
            title = self.title_boxes
        else:
            order = 'z, y, x' if len(first) == 3 else 'height x width'
            sizes = f'label {"x".join(map(str, first))}, image {"x".join(map(str, second))} ({order})'
            evidence = f'{quantity(number, "file")}, e.g. {path}: {sizes}'
            title = '' if any(_are_copies(label[-2:], image[-2:]) for _, label, image in found) else self.title_other
            if all(tuple(label) == tuple(image)[::-1] for _, label, image in found):
                title = self.title_swapped
        yield self.report_in(
            facts,
            LIKELY if maps.size_mismatches else PROVEN,  # a few may be mistakes in the list of files
            evidence,
            {'number': quantity(number, 'file')},
            title,
            files=[path for path, _, _ in found],
        )


def _are_copies(label: Tuple[int, ...], image: Tuple[int, ...]) -> bool:
    """True if two sizes (height, width) have the same proportions, up to rounding."""
    if len(label) != 2 or len(image) != 2:
        return False
    (height, width), (of_image, wide) = sorted((label, image))
    return abs(height * wide - width * of_image) <= max(of_image, wide)


#: Fault of a missing file, which another rule reports.
MISSING = 'missing'
#: Last entry of a truncated list of files.
_MORE = re.compile(r'and ([\d,]+) more')


class UnreadableFiles(DataRule):
    code = 'MG132'
    aliases = ('MG191', 'MG192')
    shows_values = False
    kinds = ('pixels', 'instances', 'voxels')
    needs = ('maps.unreadable or annotations.unreadable or volumes.faults',)
    summary = 'Files cannot be read.'
    title = 'Files cannot be read: {number} ({reasons}).'
    why = (
        'The loader fails at the iteration that draws such a file (nnU-Net stops before the first iteration); a '
        'truncated file may decode to rows of 0.'
    )
    example = Example(wrong='a Git LFS pointer of 130 bytes in place of 7.png', right='git lfs pull')
    limits = 'A readable file may still be truncated, if its format does not show this.'
    advice = (
        'Copy or export these files again (check the free space, and replace Git LFS pointers with `git lfs pull`), '
        'or leave them out of the split. If the fault names a missing package, install the package.'
    )
    advice_volumes = (
        'Copy or export these files again (check the free space), or leave out their cases and reduce numTraining in '
        'dataset.json. Save one volume of a four-dimensional label (`seg[..., 0]`); make the axes of a header '
        'orthonormal with `image.set_sform(image.get_qform()); nib.save(image, path)`.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        found: Dict[str, List[str]] = {}
        unlisted: Counter = Counter()
        maps = get_maps(labels)
        for reason, paths in maps.unreadable.items():
            if paths and reason != MISSING:
                found.setdefault(reason, []).extend(paths)
                unlisted[reason] += max(maps.counts.get(f'unreadable {reason}', 0) - len(paths), 0)
        for reason, paths in get_annotations(labels).unreadable.items():
            if paths and reason != NO_FOLDER_FAULT and reason.startswith(WHOLE_FILE):
                more = _MORE.fullmatch(paths[-1])
                found.setdefault(reason, []).extend(paths[:-1] if more else paths)
                unlisted[reason] += int(more[1].replace(',', '')) if more else 0
        for fault in labels.volumes.find_faults(UNREADABLE, FORM) if labels.volumes is not None else ():
            found.setdefault(fault.detail.split(':')[0], []).append(fault.file)
        if found:
            evidence = '; '.join(
                f'{reason}: {join_items(paths, 3, unlisted[reason])}' for reason, paths in found.items()
            )
            files = list(dict.fromkeys(path for paths in found.values() for path in paths))
            words = {'number': f'{len(files) + sum(unlisted.values()):,}', 'reasons': join_items(found, 4)}
            if labels.volumes is None:
                yield self.report_in(facts, LIKELY, evidence, words, files=files)
            else:
                yield self.report_in(facts, PROVEN, evidence, words, files=files, advice=self.advice_volumes)


class MissingImages(AnnotationRule):
    code = 'MG150'
    needs = ('annotations.missing or annotations.missing_files',)
    summary = 'Images listed in the annotations are missing on disk.'
    title = 'Images listed in the annotations are missing on disk: {number} of {images}.'
    title_outside = (
        'Images listed in the annotations are missing on disk, or outside the data set: {number} of {images}.'
    )
    why = 'The loader fails at the iteration that draws such an image.'
    example = Example(
        wrong='data_prefix=dict(img=\'train2017/\')  # "file_name": "train2017/0001.jpg"',
        right="data_prefix=dict(img='')",
    )
    limits = 'File names are compared letter by letter: the same image under another name is not found.'
    advice = (
        'Compare file_name with `data_prefix=dict(img=...)`: write each folder only once, and remove paths of another '
        'machine. Remove the entries of images that do not exist any more.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        found = get_annotations(labels)
        number = max(found.missing, len(found.missing_files))
        folders = found.unreadable.get(NO_FOLDER_FAULT, [])
        where = f'; the folder {join_items(folders, 2)} does not exist' if folders else ''
        evidence = f'{quantity(number, "file")} of {found.images:,}, e.g. {join_items(found.missing_files, 3)}{where}'
        is_outside = any(name.endswith(f'({OUTSIDE_REASON})') for name in found.missing_files)
        yield self.report_in(
            facts,
            PROVEN if 0 < found.images <= number else LIKELY,
            evidence,
            {'number': f'{number:,}', 'images': f'{found.images:,}'},
            self.title_outside if is_outside else '',
            files=found.missing_files,
        )


#: Maximum number of file names to read from a folder.
_NAMES = 100_000


#: Suffixes of image formats that store classes without loss.
_EXACT = ('.png', '.bmp', '.tif', '.tiff', '.gif', '.pgm')


def set_suffix(rule: Rule, facts: Facts) -> Iterator[Edit]:
    """Yield an edit that sets ``seg_map_suffix`` in all splits where ``rule`` finds missing label files."""
    found = [
        (dataset, _find_suffixes(dataset, split.labels.maps.missing_labels))
        for split in (facts, *facts.others)
        if split.labels is not None and split.labels.maps is not None and any(True for _ in rule.find(split))
        for dataset in (find_datasets(facts.config) if facts.config is not None else ())
        if dataset.split in split.labels.split.split(', ')
    ]
    for ending in sorted(set.intersection(*(endings for _, endings in found))) if found else ():
        pattern = os.path.join(found[0][0].config['data_prefix']['seg_map_path'], f'*{ending}')
        question = Message('Are the files {pattern} the label maps?', pattern=pattern)
        changes = tuple((dataset.place('seg_map_suffix'), ending) for dataset, _ in found)
        yield Edit('Set the suffix of the label maps.', question, changes)


def _find_suffixes(dataset: Part, files: Sequence[str]) -> Set[str]:
    """Return the suffixes that, in place of ``seg_map_suffix``, turn all of these names into existing files."""
    root, suffix = str(dataset.config.get('data_root') or ''), dataset.config.get('seg_map_suffix', SUFFIX)
    prefix = dataset.config.get('data_prefix')
    folder = prefix.get('seg_map_path') if isinstance(prefix, dict) else None
    if not isinstance(folder, str) or not isinstance(suffix, str):
        return set()
    paths = [os.path.relpath(os.path.join(root, file), os.path.join(root, folder)) for file in files]
    if not paths or any(not path.endswith(suffix) for path in paths):
        return set()
    return _find_common_endings(os.path.join(root, folder), [path[: len(path) - len(suffix)] for path in paths])


def _find_common_endings(folder: str, stems: Sequence[str]) -> Set[str]:
    """Return the suffixes that complete every stem to the name of a lossless image file in ``folder``."""
    common: List[Set[str]] = []
    for below in dict.fromkeys(map(os.path.dirname, stems)):
        try:
            with os.scandir(os.path.join(folder, below)) as entries:
                names = [entry.name for entry in islice(entries, _NAMES) if entry.name.lower().endswith(_EXACT)]
        except OSError:
            return set()
        for stem in [os.path.basename(stem) for stem in stems if os.path.dirname(stem) == below]:
            after = {name[len(stem) :] for name in names if name.startswith(stem)}
            common.append({ending for ending in after if ending.startswith(('.', '_', '-'))})  # 1 is not 10.png
    return set.intersection(*common) if common else set()
