"""Label maps: an image or array per sample, with a class per pixel."""

from __future__ import annotations

import os
from typing import List, Optional, Tuple

from mmguard.facts.labels import ConfigFacts
from mmguard.formats.files import IMAGE_ENDINGS, find_label_and_image_folders
from mmguard.formats.format import CannotCorrect, CannotScan, Format, LabelFiles, Sets, get_ending
from mmguard.formats.maps.forms import VOLUME_ENDINGS
from mmguard.formats.options import FixOptions, ScanOptions, is_left_out
from mmguard.labels.rules import LabelRule
from mmguard.labels.spaces import read_label_map
from mmguard.language import Message

#: Folders of masks in VOC and similar data sets.
_MASKS = ('SegmentationClass', 'SegmentationObject')


class LabelMaps(Format):
    """The format of a folder of label maps, or of a single label map."""

    name = 'maps'
    endings = (*IMAGE_ENDINGS, '.npy', *VOLUME_ENDINGS)
    beside_suffix = renames = True

    def detect(self, target: str) -> bool:
        return os.path.isdir(target) or not os.path.basename(target).startswith('.')

    def sets(self, target: str, options: ScanOptions) -> Sets:
        from mmguard.formats.maps.sources import FolderSource
        from mmguard.formats.options import build_settings
        from mmguard.formats.unsupported_formats import describe_files, has_photos_with_texts
        from mmguard.formats.volumes.nifti import explain_unread

        pairs: List[Tuple[str, Optional[str]]] = [(target, options.images)]
        noted = False
        if options.images is None and os.path.isdir(target):
            found = find_label_and_image_folders(target)
            if found:
                # The folder of the images is named after the split, or in the folder of the split.
                splits = {pair: os.path.relpath(pair[1], target).split(os.sep)[0] for pair in found}
                asked = [pair for pair in found if not is_left_out(splits[pair], options)]
                pairs, noted = [*(asked or found)], True
            elif all(os.path.isdir(os.path.join(target, name)) for name in _MASKS):
                pairs, noted = [(os.path.join(target, _MASKS[0]), None)], True  # SegmentationObject numbers the objects
        _import_pillow(target)
        sets = Sets([], ConfigFacts(framework='mmseg', label_map=read_label_map(dict(options.label_map))))
        if options.reduce_zero_label:
            sets.config.reduce_zero_label['--reduce-zero-label'] = True
        for labels, images in pairs:
            try:
                source = FolderSource(labels, build_settings(options), images, options.suffix)
                are_volumes = (source.suffix or labels).lower().endswith(VOLUME_ENDINGS)
                why = explain_unread('NibabelIO', '.nii') if are_volumes else ''
                if why:
                    raise CannotScan(f'{labels}: {why}')
                instead = source.list_other_files()
            except OSError as error:
                raise CannotScan(str(error)) from error
            if instead is None and not source.suffix and os.path.isdir(labels) and has_photos_with_texts(labels):
                raise CannotScan(
                    f'{labels} was not read: it holds photos with a .txt file of labels each, but no label map. '
                    'For YOLO, pass the data.yaml, or the folder that holds images/ and labels/'
                )
            if instead is not None:
                said = f'{labels} was not read: it has no label map. {describe_files(instead, source.suffix)}'
                if len(pairs) == 1:
                    raise CannotScan(said)
                sets.failed.append(said)
                continue
            if noted and images is not None:
                source.notes.append(Message('labels: {labels}, images: {images}', labels=labels, images=images))
            elif noted:
                source.notes.append(Message('labels: {labels}', labels=labels))
            if noted and are_volumes:
                note = Message(
                    'read as label maps: {folder} has no dataset.json, which nnU-Net requires', folder=target
                )
                source.notes.append(note)
            if options.num_classes is None:
                note = Message('every value counts as a class: add --num-classes N to find invalid values')
                source.notes.append(note)
            sets.sources.append(source)
        return sets

    def files(self, target: str, options: FixOptions) -> LabelFiles:
        from mmguard.formats.maps.forms import correct_map
        from mmguard.formats.maps.sources import find_label_files

        if not os.path.isdir(target):
            raise CannotCorrect(
                f'{target}: single label maps cannot be corrected. Name their folder, a COCO or LVIS .json, '
                'or a data.yaml'
            )
        maps = sorted(os.path.relpath(path, target) for path in find_label_files(target, options.suffix))
        if not maps:
            if options.suffix:
                raise CannotCorrect(f'{target}: no label map has a name that ends with {options.suffix} (--suffix)')
            return super().files(target, options)
        if maps[0].lower().endswith(VOLUME_ENDINGS):
            raise CannotCorrect(f'{target}: NIfTI files are not rewritten. Map the values where your code loads them')
        import PIL.Image  # noqa: F401  without it no label map can be written

        if options.num_classes is None:
            raise CannotCorrect('label maps do not contain the number of classes: add --num-classes N')
        try:
            LabelRule(options.num_classes or 1, options.ignore_index, options.on_invalid, options.label_map)
        except (TypeError, ValueError) as error:
            raise CannotCorrect(str(error)) from error
        return LabelFiles(
            [(os.path.join(target, name), name) for name in maps],
            lambda data, name: correct_map(data, get_ending(name), options),
        )


def _import_pillow(target: str) -> None:
    """Import pillow once before forking, not in each child process; raise CannotScan if that fails."""
    try:
        import PIL.Image  # noqa: F401
    except ImportError as error:
        raise CannotScan(
            f'{target}: label maps are read with pillow, which cannot be imported ({error}): pip install pillow. COCO, '
            f'LVIS and VOC annotations are read without pillow'
        ) from error
