"""All situations under one name each."""

from __future__ import annotations

from typing import Dict

import annotation_files
import detection_configs
import detr_configs
import mask_files
import mask_values
import segmentation_configs
import slips
from situation import Situation

TABLES = (mask_values, mask_files, segmentation_configs, annotation_files, detection_configs, detr_configs, slips)
SITUATIONS: Dict[str, Situation] = {
    f'{table.__name__}: {name}': situation for table in TABLES for name, situation in table.SITUATIONS.items()
}
