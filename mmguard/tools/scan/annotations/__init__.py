"""What annotation files hold: COCO and LVIS JSON, VOC XML, OpenImages csv, Labelme, and data sets of mmdet's configs.

Imports what a scan may.
"""

from mmguard.tools.scan.annotations.coco import scan_coco
from mmguard.tools.scan.annotations.datasets import datasets_of_config, scan_dataset, scan_detection_config
from mmguard.tools.scan.annotations.labelme import scan_labelme
from mmguard.tools.scan.annotations.openimages import scan_openimages
from mmguard.tools.scan.annotations.voc import scan_voc

__all__ = [
    'datasets_of_config',
    'scan_coco',
    'scan_dataset',
    'scan_detection_config',
    'scan_labelme',
    'scan_openimages',
    'scan_voc',
]
