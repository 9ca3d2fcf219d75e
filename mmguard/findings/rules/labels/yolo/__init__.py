"""Causes in the label files of YOLO data sets.

Imports what findings may; no rules but its own.
"""

from typing import List, Type

from mmguard.findings.rule import DataRule
from mmguard.findings.rules.labels.yolo.data_yaml import DataYaml
from mmguard.findings.rules.labels.yolo.images_without_label_file import ImagesWithoutLabelFile
from mmguard.findings.rules.labels.yolo.no_fractions import NoFractions
from mmguard.findings.rules.labels.yolo.refused_rows import RefusedRows
from mmguard.findings.rules.labels.yolo.rows_of_another_task import RowsOfAnotherTask

YOLO_RULES: List[Type[DataRule]] = [
    RefusedRows,
    NoFractions,
    RowsOfAnotherTask,
    DataYaml,
    ImagesWithoutLabelFile,
]
