"""Annotation files: COCO and LVIS JSON, VOC XML, OpenImages csv, Labelme, and data sets of mmdet configs."""
