"""Situations whose first finding has no edit that a machine can write, and why: the list may only shrink."""

from __future__ import annotations

from typing import Dict

WITHOUT: Dict[str, str] = {
    'mask_values: two annotators: 0..3 and 1..4': 'MG171: files of two kinds are to be reported apart by hand',
    'mask_values: half of the files are void': 'MG128: files of void alone are right: the loss must bear them',
    'mask_values: nothing was drawn': 'MG135: the export is to be repeated',
    'mask_files: JPEG masks of five classes': 'MG136: blended labels are to be exported anew',
    'mask_files: resized with averaging, void': 'MG136: blended labels are to be exported anew',
    'mask_files: milesial/Pytorch-UNet#311': 'MG136: blended labels are to be exported anew',
    'mask_files: CVAT colours': 'MG120: the colours of the classes are not known, or are no exact colours',
    'mask_files: COCO panoptic PNGs': 'MG120: the colours of the classes are not known, or are no exact colours',
    'mask_files: other size': 'MG130: files are to be drawn again in the size of their photographs',
    'mask_files: EXIF': 'MG130: files are to be drawn again in the size of their photographs',
    'mask_files: transposed': 'MG130: files are to be drawn again in the size of their photographs',
    'mask_files: folders swapped': 'MG131: the right folder is not known',
    'mask_files: the label folder is the image folder': 'MG131: the right folder is not known',
    'mask_files: photographs in the label folder': 'MG131: the right folder is not known',
    'mask_files: git lfs': 'MG132: files are to be copied again',
    'mask_files: cut off': 'MG132: files are to be copied again',
    'mask_files: some labels are missing': 'MG129: files are to be moved, renamed or drawn',
    'mask_files: case of names': 'MG129: files are to be moved, renamed or drawn',
    'mask_files: leading zeros': 'MG129: files are to be moved, renamed or drawn',
    'annotation_files: no categories': 'MG149: the categories are not known',
    'annotation_files: no annotations': 'MG174: there is nothing to train on',
    'annotation_files: two files merged, image ids': 'MG147: which image an annotation belongs to is not known',
    'annotation_files: VOC: size is 0': 'MG176: a file of another format',
    'detection_configs: pictures are turned': 'MG175: boxes were drawn on other pictures',
    'second_round: plt.imsave with viridis': 'MG120: the colours of the classes are not known, or are no exact colours',
    'second_round: two labels on thumbnails': 'MG130: files are to be drawn again in the size of their photographs',
    'second_round: rotated boxes': 'MG176: a file of another format',
    'second_round: VOC: an XML is cut off': 'MG132: files are to be copied again',
    'third_round: colour masks as JPEG': 'MG120: the colours of the classes are not known, or are no exact colours',
    'third_round: gray levels as WebP': 'MG136: blended labels are to be exported anew',
    'third_round: two exports in one folder': 'MG129: files are to be moved, renamed or drawn',
    'third_round: averaged, then rounded': 'MG136: blended labels are to be exported anew',
    'third_round: rotated with averaging': 'MG136: blended labels are to be exported anew',
    'third_round: one picture of another size': 'MG175: boxes were drawn on other pictures',
    'reports: mmdetection#2972': 'MG109: what the boxes should be is known to the annotator alone',
}
