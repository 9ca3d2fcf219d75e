"""Situations whose first finding has no edit that a machine can write, and why: the list may only shrink."""

from __future__ import annotations

from typing import Dict

WITHOUT: Dict[str, str] = {
    'detection_configs: pictures were resized afterwards': 'MG130: boxes were drawn on other pictures',
    'mask_values: half of the files are void': 'MG128: files of void alone are right: the loss must bear them',
    'mask_files: milesial/Pytorch-UNet#311': 'MG136: blended labels are to be exported anew',
    'mask_files: other size': 'MG130: files are to be drawn again in the size of their photographs',
    'mask_files: EXIF': 'MG130: files are to be drawn again in the size of their photographs',
    'detection_configs: the folder twice': 'MG150: where the images are is not known',
    'detection_configs: the ending in another case': 'MG150: where the images are is not known',
    'mask_files: git lfs': 'MG132: files are to be copied again',
    'mask_files: cut off': 'MG132: files are to be copied again',
    'mask_files: some labels are missing': 'MG129: files are to be moved, renamed or drawn',
    'mask_files: case of names': 'MG129: files are to be moved, renamed or drawn',
    'annotation_files: no categories': 'MG149: the categories are not known',
    'annotation_files: no annotations': 'MG174: there is nothing to train on',
    'annotation_files: VOC: size is 0': 'MG176: a file of another format',
    'annotation_files: ids in the order of texts, file alone': 'MG141: who trains is not known',
    'annotation_files: the second half of a list, detectron2': 'MG141: the other files have the rest of the list',
    'detection_configs: with_mask, boxes alone': 'MG396: masks are to be drawn, or the model is to be another',
    'annotation_files: masks: few are missing': 'MG396: masks are to be drawn',
    'annotation_files: VOC: an XML is cut off': 'MG132: files are to be copied again',
    'annotation_files: pytorch/vision#1128': 'MG109: so many boxes are no slips, and how they are written is not known',
    'reports: mmsegmentation#1488': 'MG120: which class a color is stands in the list of the tool that drew it',
    'reports: lyuwenyu/RT-DETR#672': 'MG146: images without an object are right',
    'reports: mmdetection#2047': 'MG160: the class list is that of another program',
}
