"""Image classification: a folder per class, or a list of images with their labels."""

from __future__ import annotations

from functools import partial

from mmguard.findings.facts import ConfigFacts
from mmguard.formats.format import CannotScan, Format, LabelSet, Sets
from mmguard.formats.options import ScanOptions, is_left_out

_BY_FOLDER = (
    'the folders are the classes: a label is the place among their sorted names (CustomDataset without ann_file of '
    'mmpretrain, ImageFolder of torchvision)'
)


class ClassFolders(Format):
    """A folder whose subfolders are the classes, or one such folder per split."""

    name = 'images'

    def detect(self, target: str) -> bool:
        from mmguard.formats.folders.read import splits_of_classes

        return bool(splits_of_classes(target))

    def sets(self, target: str, options: ScanOptions) -> Sets:
        from mmguard.formats.folders.read import find_box_file, find_mask_ending, scan_class_folder, splits_of_classes

        folders = splits_of_classes(target)
        boxes = next(filter(None, map(find_box_file, folders.values())), '')
        if boxes:
            raise CannotScan(
                f'{target}: {boxes} holds boxes of an image, so the folders are not image classes. For YOLO, '
                f'name the data.yaml: ultralytics looks for label files next to the images, or where a folder is '
                f'called images, in labels/ instead; a row is the number of the class and 4 fractions, '
                f'`0 0.5 0.5 0.1 0.1`'
            )
        ending = next(filter(None, map(find_mask_ending, folders.values())), '')
        if ending:
            raise CannotScan(
                f'{target}: every image has another one whose name ends in {ending}, as masks have, so the folders are '
                f'not image classes. Scan the masks: `mmguard scan {target} --suffix={ending} --num-classes N`'
            )
        train = next(iter(folders.values()), '')
        sets = Sets([], ConfigFacts(framework='mmpretrain'))
        for split, folder in folders.items():
            if not is_left_out(split, options):
                read = partial(scan_class_folder, folder, options.num_classes, options.classes, train)
                sets.sources.append(LabelSet(split or target, read, [_BY_FOLDER]))
        if not sets.sources:
            raise CannotScan(f'{target} has no labels of {", ".join(options.splits)}')
        return sets
