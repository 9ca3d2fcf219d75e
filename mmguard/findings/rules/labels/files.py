"""Files that are unpaired, of another size, missing or unreadable."""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Tuple

from mmguard.files.inside import OUTSIDE
from mmguard.findings.edits import Edit
from mmguard.findings.facts import AnnotationFacts, LabelFacts
from mmguard.findings.finding import ERROR, LIKELY, PROVEN
from mmguard.findings.map_edits import set_suffix
from mmguard.findings.rule import AnnotationRule, DataRule, Example, Facts
from mmguard.findings.rules.labels.records import NO_FOLDER, is_about_records
from mmguard.findings.views import annotations_of, has_config, listing, maps_of, number_of
from mmguard.findings.volumes import CHANNELS, FORM, NO_IMAGE, NO_LABEL, STRANGER, UNREADABLE
from mmguard.language import join
from mmguard.text import quantity

#: List of ``MapFacts``, or kind of fault of a volume -> description of one and of several files.
NAMED = {
    'missing_labels': ('image without a label file', 'images without a label file'),
    'missing_images': ('label file without an image', 'label files without an image'),
    'duplicates': ('name with two files', 'names with two files'),
    NO_LABEL: ('label file missing', 'label files missing'),
    CHANNELS: ('channel missing or left over', 'channels missing or left over'),
    NO_IMAGE: ('image missing', 'images missing'),
    STRANGER: ('file that nnU-Net does not see', 'files that nnU-Net does not see'),
}

#: Kinds that stop nnU-Net.
ENDS = {NO_LABEL, CHANNELS}


class UnpairedFiles(DataRule):
    """Images without a label file, labels without an image, duplicates, and cases with missing files."""

    code = 'MG129'
    aliases = ('MG184',)
    shows_values = False
    kinds = ('pixels', 'voxels')
    needs = ()
    severity = 'warning'
    summary = 'Images and label files do not pair up.'
    title = 'Images and label files do not pair up: {number} without a partner, or with two.'
    title_none = 'No label file has the name that the config, or the two folders, make up for its image.'
    why = (
        'A missing label file ends the training at the iteration that draws it, nnU-Net before the first; of two '
        'files with the same stem, only one is read.'
    )
    example = Example(
        wrong="img_suffix='.jpg', seg_map_suffix='.png'; files 7.jpg and 7_mask.png",
        right="img_suffix='.jpg', seg_map_suffix='_mask.png'",
    )
    limits = 'It compares names only: a pair may still be of two different scenes.'
    advice = (
        'A label file has the name of its image without `img_suffix`, plus `seg_map_suffix`. Compare one image with '
        'its label file, letter by letter (case, leading zeros), write both endings and both folders in `data_prefix`. '
        'If only some lack a partner, complete or remove them, or name the complete pairs in `ann_file=...`. A case of '
        'nnU-Net is `imagesTr/CASE_0000.nii.gz`, one file per channel (_0000, _0001), and `labelsTr/CASE.nii.gz`.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        is_sure = facts.volumes is not None or self._has_no_pair(facts)
        return None if not self._parts(facts) else PROVEN if is_sure else LIKELY

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        if self._has_no_pair(labels):
            yield from set_suffix(self, facts)

    def severity_of(self, facts: LabelFacts) -> str:
        # An image without a label file ends a training; an extra label file does not.
        found = self._find_unpaired(facts)
        return ERROR if (has_config(facts) and 'missing_labels' in found) or found.keys() & ENDS else self.severity

    def _has_no_pair(self, facts: LabelFacts) -> bool:
        """True if no pair was found at all, in a config or in two folders."""
        maps = maps_of(facts)
        lacking = number_of(maps, 'missing_labels') or number_of(maps, 'missing_images')
        if has_config(facts):
            return bool(lacking) and not maps.forms
        labels = sum(maps.forms.values())
        return bool(labels) and number_of(maps, 'missing_images') == labels

    def choose_title(self, facts: LabelFacts) -> str:
        return self.title_none if self._has_no_pair(facts) else self.title

    def describe(self, facts: LabelFacts) -> Dict[str, str]:
        return {'number': quantity(sum(number for number, _ in self._find_unpaired(facts).values()), 'name')}

    def evidence(self, facts: LabelFacts) -> str:
        return join('; ', self._parts(facts))

    def files(self, facts: LabelFacts) -> List[str]:
        if facts.volumes is not None:
            return [fault.file for fault in facts.volumes.find_faults(*NAMED)]
        return [file for _, files in self._find_unpaired(facts).values() for file in files]

    def _parts(self, facts: LabelFacts) -> List[str]:
        return [
            join(': ', (quantity(number, *NAMED[kind]), listing(files, 3)))
            for kind, (number, files) in self._find_unpaired(facts).items()
        ]

    def _find_unpaired(self, facts: LabelFacts) -> Dict[str, Tuple[int, List[str]]]:
        """Return kind -> number of files, and the first of them (for volumes with details)."""
        if facts.volumes is not None:
            faults = {kind: facts.volumes.find_faults(kind) for kind in NAMED}
            texts = {kind: [f'{fault.file}: {fault.detail}' for fault in found] for kind, found in faults.items()}
            return {kind: (len(files), files) for kind, files in texts.items() if files}
        maps = maps_of(facts)
        return {
            kind: (number_of(maps, kind), getattr(maps, kind))
            for kind in ('missing_labels', 'missing_images', 'duplicates')
            if number_of(maps, kind)
        }


class SizeMismatch(DataRule):
    """Labels whose size differs from their images."""

    code = 'MG130'
    aliases = ('MG175',)
    shows_values = False
    kinds = ('pixels', 'instances')
    needs = ()
    summary = 'Labels differ in size from their images.'
    title = 'Label maps differ in size from their images: {number}.'
    title_swapped = 'Label maps have the height and width of their images swapped: {number}.'
    title_other = 'Label maps have neither the size nor the proportions of their images: {number}.'
    title_boxes = 'Images on disk differ in size from the annotations: {number}.'
    why = 'Crops of image and label show different places, or the shapes clash in the loss; boxes are somewhere else.'
    example = Example(
        wrong='image 2048 x 1024, label map 1024 x 512',
        right='cv2.resize(label, (2048, 1024), interpolation=cv2.INTER_NEAREST)',
    )
    limits = 'It compares sizes only; a label of the right size may belong to another image.'
    advice = (
        'Look at one image with its label. If it is a smaller copy, scale the label: maps with INTER_NEAREST, boxes '
        'by width_on_disk / width and height_on_disk / height. If height and width are swapped, write `label.T`, or '
        'remove the EXIF tag that turns the image: `Image.fromarray(np.array(Image.open(path))).save(path)`. If '
        'neither is the case, or the proportions differ, label and image do not belong together: do not resize '
        'anything, use the images that were annotated.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        # One or two may be slips in the list, which affect as many images.
        return LIKELY if maps_of(facts).size_mismatches else PROVEN if self._mismatches(facts) else None

    def choose_title(self, facts: LabelFacts) -> str:
        if facts.annotations is not None:
            return self.title_boxes
        sizes = [(label, image) for _, label, image in self._mismatches(facts)]
        if all(tuple(label) == tuple(image)[::-1] for label, image in sizes):
            return self.title_swapped
        return self.title_other if not any(_are_copies(*both) for both in sizes) else self.title

    def describe(self, facts: LabelFacts) -> Dict[str, str]:
        number = number_of(maps_of(facts), 'size_mismatches') or len(self._mismatches(facts))
        return {'number': quantity(number, 'file')}

    def evidence(self, facts: LabelFacts) -> str:
        found = self._mismatches(facts)
        path, first, second = found[0]
        if facts.annotations is not None:
            sizes = f'{first[1]} x {first[0]} on disk, {second[1]} x {second[0]} in the annotations'
            return f'{len(found):,} of {facts.annotations.sizes_compared:,} images compared, e.g. {path}: {sizes}'
        number = quantity(number_of(maps_of(facts), 'size_mismatches'), 'file')
        sizes = f'label {first[0]}x{first[1]}, image {second[0]}x{second[1]} (height x width)'
        return f'{number}, e.g. {path}: {sizes}'

    def files(self, facts: LabelFacts) -> List[str]:
        return [path for path, _, _ in self._mismatches(facts)]

    def _mismatches(self, facts: LabelFacts) -> List[Tuple[str, Tuple[int, int], Tuple[int, int]]]:
        return maps_of(facts).size_mismatches or annotations_of(facts).size_mismatches


def _are_copies(label: Tuple[int, int], image: Tuple[int, int]) -> bool:
    """True if one size is the other at another scale, up to rounding."""
    (height, width), (of_image, wide) = sorted((label, image))
    return abs(height * wide - width * of_image) <= max(of_image, wide)


#: A missing file has a cause of its own.
MISSING = 'missing'


class UnreadableFiles(DataRule):
    """Files that cannot be decoded, or do not hold one value per pixel or voxel."""

    code = 'MG132'
    aliases = ('MG191', 'MG192')
    shows_values = False
    kinds = ('pixels', 'instances', 'voxels')
    needs = ()
    summary = 'Files cannot be read.'
    title = 'Files cannot be read: {reasons}.'
    why = (
        'The loader fails at the iteration that draws them, nnU-Net before the first; a truncated file may decode to '
        'rows of 0.'
    )
    example = Example(
        wrong='a Git LFS pointer of 130 bytes in place of 7.png',
        right='git lfs pull',
    )
    limits = 'A file that can be read may still be cut short in a way that its format does not show.'
    advice = (
        'Copy or export these files again (check the free space, and replace Git LFS pointers with `git lfs pull`), '
        'or leave them out of the split, in a nnU-Net data set with a smaller numTraining. If a package is needed, '
        'install it. If a label has four dimensions, save the volume that is meant, `seg[..., 0]`. If the axes of a '
        'header are not orthonormal, save the file again: `image.set_sform(image.get_qform()); nib.save(image, '
        'path)`.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        sure = LIKELY if facts.volumes is None else PROVEN
        return sure if self._reasons(facts) else None

    def describe(self, facts: LabelFacts) -> Dict[str, str]:
        return {'reasons': listing(self._reasons(facts), 4)}

    def evidence(self, facts: LabelFacts) -> str:
        return '; '.join(f'{reason}: {listing(paths, 3)}' for reason, paths in self._reasons(facts).items())

    def files(self, facts: LabelFacts) -> List[str]:
        return [path for paths in self._reasons(facts).values() for path in paths]

    def _reasons(self, facts: LabelFacts) -> Dict[str, List[str]]:
        found: Dict[str, List[str]] = {}
        for reason, paths in maps_of(facts).unreadable.items():
            if paths and reason != MISSING:
                found.setdefault(reason, []).extend(paths)
        for reason, paths in annotations_of(facts).unreadable.items():
            if paths and reason != NO_FOLDER and not is_about_records(reason):
                found.setdefault(reason, []).extend(paths)
        for fault in facts.volumes.find_faults(UNREADABLE, FORM) if facts.volumes is not None else ():
            found.setdefault(fault.detail.split(':')[0], []).append(fault.file)
        return found


class MissingImages(AnnotationRule):
    """Images in the annotations that are missing on disk."""

    code = 'MG150'
    summary = 'Images that the annotations list are missing on disk.'
    title = 'Images that the annotations list are missing on disk: {number} of {images}.'
    title_outside = (
        'Images that the annotations list are missing on disk, or outside the data set: {number} of {images}.'
    )
    why = 'The loader fails at the iteration that draws one.'
    example = Example(
        wrong='data_prefix=dict(img=\'train2017/\')  # "file_name": "train2017/0001.jpg"',
        right="data_prefix=dict(img='')",
    )
    limits = (
        'It looks for the names that the annotations give, letter by letter, not for the same image under another name.'
    )
    advice = (
        'Compare file_name (Labelme: imagePath) with the folder of the images, `data_prefix=dict(img=...)`, in Labelme '
        '`--images DIR`. A folder in both is one too many; paths of another machine, and backslashes of Windows, match '
        'nothing. Remove the entries of images that do not exist any more.'
    )

    def choose_title(self, facts: LabelFacts) -> str:
        is_outside = any(name.endswith(f'({OUTSIDE})') for name in annotations_of(facts).missing_files)
        return self.title_outside if is_outside else self.title

    def describe(self, facts: LabelFacts) -> Dict[str, str]:
        found = annotations_of(facts)
        return {'number': f'{_number(found):,}', 'images': f'{found.images:,}'}

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        found = annotations_of(facts)
        everything = 0 < found.images <= _number(found)
        return PROVEN if everything else LIKELY if found.missing_files or found.missing else None

    def evidence(self, facts: LabelFacts) -> str:
        found = annotations_of(facts)
        folders = found.unreadable.get(NO_FOLDER, [])
        where = f'; the folder {listing(folders, 2)} does not exist' if folders else ''
        return f'{quantity(_number(found), "file")} of {found.images:,}, e.g. {listing(found.missing_files, 3)}{where}'

    def files(self, facts: LabelFacts) -> List[str]:
        return annotations_of(facts).missing_files


def _number(found: AnnotationFacts) -> int:
    return max(found.missing, len(found.missing_files))
