"""COCO, LVIS and panoptic JSON."""
