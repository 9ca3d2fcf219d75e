"""What annotation files hold: COCO and LVIS JSON, VOC XML, OpenImages csv, and the data sets of mmdet's configs."""

from mmguard.scan.annotations.coco import scan_coco

__all__ = ['scan_coco']
