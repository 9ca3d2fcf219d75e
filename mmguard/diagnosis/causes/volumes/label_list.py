from __future__ import annotations

from mmguard.diagnosis.causes.volumes.base import DeclaredCause, volumes_of
from mmguard.diagnosis.facts import LabelFacts


class LabelList(DeclaredCause):
    """Labels in dataset.json that nnU-Net refuses."""

    code = 'MG181'
    kind = 'labels'
    weight = 0.97
    summary = 'The labels in dataset.json are not 0, 1, 2, ... with background 0 and ignore last.'
    why = 'nnU-Net uses a label as the index of an output channel: a gap has no channel, and it refuses to plan.'
    advice = (
        'Write the labels as integers without a gap, each name once: `"labels": {{"background": 0, "liver": 1, '
        '"tumor": 2, "ignore": 3}}`, and renumber the label files accordingly, e.g. `seg[seg == 4] = 3`.'
    )


class RegionList(DeclaredCause):
    """Regions in dataset.json without the order in which they are written."""

    code = 'MG182'
    kind = 'regions'
    weight = 0.96
    summary = 'Regions are declared, but regions_class_order does not fit them.'
    why = 'Region-based training predicts overlapping regions; the order says which label each writes, largest first.'
    advice = (
        'One entry per region but background, in the order of labels: `"labels": {{"background": 0, "whole": [1, 2], '
        '"core": [2]}}, "regions_class_order": [1, 2]`.'
    )


class TrainingCount(DeclaredCause):
    """numTraining that is not the number of cases."""

    code = 'MG183'
    kind = 'count'
    weight = 0.7
    summary = 'The numTraining in dataset.json is not the number of cases.'
    why = 'nnU-Net stops; and often cases are missing because a copy was cut short.'
    advice = 'If all cases are there, write `"numTraining": {cases}`.'

    def words(self, facts: LabelFacts) -> dict:
        return {'cases': volumes_of(facts).cases}
