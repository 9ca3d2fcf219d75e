"""Causes in the texts of data sets of YOLO.

Imports what findings may; no rules but its own.
"""

from typing import List, Type

from mmguard.findings.rule import DataRule
from mmguard.findings.rules.labels.yolo.data_yaml import DataYaml
from mmguard.findings.rules.labels.yolo.images_without_text import ImagesWithoutText
from mmguard.findings.rules.labels.yolo.no_fractions import NoFractions
from mmguard.findings.rules.labels.yolo.refused_rows import RefusedRows
from mmguard.findings.rules.labels.yolo.rows_of_another_task import RowsOfAnotherTask
from mmguard.findings.rules.labels.yolo.rows_twice import RowsTwice
from mmguard.findings.rules.labels.yolo.texts_without_image import TextsWithoutImage

YOLO_RULES: List[Type[DataRule]] = [
    RefusedRows,
    NoFractions,
    RowsOfAnotherTask,
    RowsTwice,
    TextsWithoutImage,
    DataYaml,
    ImagesWithoutText,
]
