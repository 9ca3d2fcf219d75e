from __future__ import annotations

from typing import Dict, Iterator, List, Tuple

from mmguard.findings.box_formats import JSON, NEARLY_ALL
from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.views import annotations_of, share

#: Who takes ids as labels opens images with pillow, as torchvision's CocoDetection does; mmcv and detectron2 turn them.
READ_AS_STORED = ('category id', 'COCO ids')


class ImageSizeDiffers(DataRule):
    """Images that were resized, or turned, after they were annotated."""

    code = 'MG175'
    explains = ('MG152',)
    kinds = ('instances',)
    needs = ('annotations',)
    summary = 'Images have another size on disk than in the annotations: the boxes lie somewhere else.'
    why = 'Loaders take the boxes as they are. Nothing crashes; what is learnt is displaced.'
    exif = "Images have an EXIF tag that turns them: torchvision's CocoDetection (DETR and its like) ignores it."
    exif_advice = (
        'Boxes that were drawn on the image as it is shown lie elsewhere in the one that is read. Write the images '
        'upright, without the tag: `ImageOps.exif_transpose(Image.open(path)).save(path)`. Look at one image with its '
        'boxes first: if they fit the image as it is stored, nothing is to do.'
    )
    advice = (
        'Use the images that were annotated, or scale the boxes with them: `sx = width_on_disk / width; '
        'sy = height_on_disk / height` and `bbox = [x * sx, y * sy, w * sx, h * sy]`, then correct `"width"` and '
        '`"height"`.'
    )
    turned = (
        'Height and width are swapped: the image is turned by its EXIF tag, which some tools heed and some do not, or '
        'the two numbers were confused. Look at one image with its boxes. If only the numbers are wrong, correct '
        '`"width"` and `"height"`; if the boxes fit the image as it is stored, drop the tag: '
        '`Image.fromarray(np.asarray(image)).save(path)`.'
    )

    tagged = (
        'An EXIF tag turns the images in mmcv and detectron2, and the annotations have the sizes of what is stored: '
        'look at one image with its boxes. If they fit it as it is stored, write the images without the tag: '
        '`Image.fromarray(np.asarray(Image.open(path))).save(path)`. If they fit it as it is shown, correct width and '
        'height in the annotations.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        # One or two may be slips of the list; they spoil as many images.
        return 0.92 if self._mismatches(facts) else 0.7 if self._are_read_turned(facts) else 0.0

    def severity_of(self, facts: LabelFacts) -> str:
        return self.severity if self._mismatches(facts) else WARNING

    def summarise(self, facts: LabelFacts) -> str:
        return self.summary if self._mismatches(facts) else self.exif

    def advise(self, facts: LabelFacts) -> str:
        if not self._mismatches(facts):
            return self.exif_advice
        if self._are_tagged(facts):
            return self.tagged
        turned = all(disk == stated[::-1] for _, disk, stated in self._mismatches(facts))
        return self.turned if turned else self.advice

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is None:
            return
        found = annotations_of(facts.labels)
        pairs = [(disk, stated) for _, disk, stated in self._mismatches(facts.labels)]
        if not pairs or len(pairs) < found.sizes_compared:
            return  # what happened to a few of them, nobody knows
        if self._are_tagged(facts.labels):
            return  # the boxes lie inside either way, and swapped numbers would hide that they are displaced
        if all(disk == stated[::-1] for disk, stated in pairs):
            if share(found.inside_as.get('swapped', 0), found.annotations) < NEARLY_ALL:
                return  # the images were turned, and the boxes must be, too
            question = 'Do the boxes fit the images as they are on disk (compare one)?'
            yield from rewrite(self, facts, 'swaps width and height', ASKS, question, sizes='swapped')
            return
        factor = float(f'{pairs[0][0][0] / pairs[0][1][0]:.6g}')
        if found.format in JSON and all(
            disk == tuple(round(side * factor) for side in stated) for disk, stated in pairs
        ):
            question = f'Were the images resized after they were annotated, all of them by {factor:g}?'
            yield from rewrite(
                self, facts, 'scales boxes and sizes as the images were', ASKS, question, scale=factor, sizes='scaled'
            )

    def evidence(self, facts: LabelFacts) -> str:
        found = annotations_of(facts)
        mismatches = self._mismatches(facts)
        if not mismatches:
            of = f'{len(found.exif_turned):,} of {found.sizes_compared:,} images compared'
            return f'{of} have an EXIF tag that turns or mirrors them, e.g. {found.exif_turned[0]}'
        path, disk, stated = mismatches[0]
        sizes = f'{disk[1]} x {disk[0]} on disk, {stated[1]} x {stated[0]} in the annotations'
        tag = ', turned by an EXIF tag' if path in found.exif_turned else ''
        return f'{len(mismatches):,} of {found.sizes_compared:,} images compared, e.g. {path}: {sizes}{tag}'

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return {}

    def files(self, facts: LabelFacts) -> List[str]:
        return [path for path, _, _ in self._mismatches(facts)] or annotations_of(facts).exif_turned

    def _mismatches(self, facts: LabelFacts) -> List[Tuple[str, Tuple[int, int], Tuple[int, int]]]:
        """Those for a reader that turns images; who reads them as they are stored sees no difference in those."""
        found = annotations_of(facts)
        as_stored = set(found.exif_turned) if found.labelled_by in READ_AS_STORED else set()
        return [one for one in found.size_mismatches if not (one[0] in as_stored and one[1] == one[2][::-1])]

    def _are_tagged(self, facts: LabelFacts) -> bool:
        """Whether a tag turns each of them, by a quarter."""
        tagged = set(annotations_of(facts).exif_turned)
        return all(path in tagged and disk == stated[::-1] for path, disk, stated in self._mismatches(facts))

    def _are_read_turned(self, facts: LabelFacts) -> bool:
        """Whether boxes that fit the images as they are shown meet a reader that ignores the tag."""
        found = annotations_of(facts)
        stored = {path for path, _, _ in found.size_mismatches}
        return found.labelled_by in READ_AS_STORED and not set(found.exif_turned) <= stored
