"""The advice of causes in the words of who trains: that of the causes themselves names config keys of OpenMMLab."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, List, Sequence

from mmguard.diagnosis.causes import CAUSES
from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Finding, common_words, diagnose

#: Who may have written the record of a run.
OPENMMLAB, PYTORCH, NNUNET = FRAMEWORKS = ('openmmlab', 'pytorch', 'nnunet')

#: What to write in a PyTorch loop about class indices. A cause that is not here cannot be told from one batch (a class
#: that is missing in it says nothing).
OF_BATCHES: Dict[str, str] = {
    'MG101': "Use the *_gtFine_labelTrainIds.png files, or torchvision's Cityscapes.classes[i].train_id as a table.",
    'MG102': (
        'Either {num_classes} is void: ignore_index={num_classes}. Or the ids count from 1: target - 1. Or the model '
        'lacks a class (the background?): {more} outputs.'
    ),
    'MG103': 'Foreground is 255 here, and is to be 1: target = (target > 0).long().',
    'MG104': 'If 255 is void: ignore_index=255.',
    'MG105': 'If {least} means ignored: ignore_index={least}. If 1 was subtracted from ids that count from 0: do not.',
    'MG106': 'Load the masks as class indices: single-channel PNG, never JPEG; colours need a table to classes.',
    'MG107': 'Classes are 0..{last}: look at where these values come from, or give the model {beyond} outputs.',
    'MG115': 'Subtract one: target = target - 1.',
    'MG117': 'Renumber the ids: label_of = {{cat_id: i for i, cat_id in enumerate(sorted(cat_ids))}}.',
    'MG118': 'Renumber: target = target.masked_fill(target == 4, 3).',
    'MG119': 'Subtract one and ignore what was 0: target = target - 1, ignore_index=-1.',
    'MG125': 'Map each gray level to its class: target = torch.bucketize(target, torch.tensor({levels})).',
    'MG133': 'Subtract 1 from classes alone: target = torch.where(target == 255, 255, target - 1), ignore_index=255.',
    'MG136': (
        'Resize masks with nearest alone: torch.nn.functional.interpolate(mask, size, mode="nearest"), '
        'InterpolationMode.NEAREST in torchvision.'
    ),
    'MG137': 'Renumber the ids to 0..{last} when the data set is read.',
}

#: The same about a whole run.
OF_RUNS = {
    **OF_BATCHES,
    'MG127': 'Correct these files. The number of classes is right as it is; until then, mmguard.nn leaves them out.',
}

#: The same about a detector's targets, which know no ignored label.
OF_TARGETS = {
    'MG102': (
        'Either the model lacks a class: {more} outputs. Or the ids count from 1 where the model counts from 0: '
        "labels - 1. Or it is a slip: correct the annotation; guard_targets leaves it out with on_invalid='drop'."
    ),
    'MG105': 'If 1 was subtracted from ids that count from 0: do not. A label for "nothing" is no object: delete it.',
    'MG107': 'Classes are 0..{last}: look at where these labels come from, or give the model {beyond} outputs.',
    'MG109': (
        'Correct or delete these boxes; guard_targets leaves them out. If there are many, it is the format: '
        'torchvision reads two corners, COCO stores x, y, width, height, DETR takes centre and size divided by those '
        'of the image.'
    ),
    'MG117': OF_BATCHES['MG117'],
    'MG127': 'Correct these annotations. The number of classes is right as it is; guard_targets leaves them out.',
    'MG137': OF_BATCHES['MG137'],
}


def diagnose_for(framework: str, facts: LabelFacts, roots: Sequence[str] = ()) -> List[Finding]:
    """All findings that the facts support, the most likely first, with advice for a framework.

    Args:
        framework (str): One of :data:`FRAMEWORKS`; any other is taken for OpenMMLab.
        facts (LabelFacts): What is known.
        roots (sequence of str): Of the data set: nnU-Net's raw folder.
    """
    if framework == NNUNET:
        advice = ' '.join(in_nnunet(roots[0] if roots else '$nnUNet_raw/DATASET'))
        return [replace(finding, advice=advice) for finding in diagnose(facts, CAUSES)]
    if framework == PYTORCH:
        return in_pytorch(facts, OF_TARGETS if facts.kind == 'instances' else OF_RUNS)
    return diagnose(facts, CAUSES)


def in_pytorch(facts: LabelFacts, advice: Dict[str, str]) -> List[Finding]:
    """The findings for which there is advice: code -> template."""
    words = {
        **common_words(facts),
        'least': min(facts.values, default=0),
        'beyond': max(facts.values, default=0) + 1,
        'levels': sorted(facts.histogram or facts.values),
    }
    found = diagnose(facts, [cause for cause in CAUSES if cause.code in advice])
    return [replace(finding, advice=advice[finding.code].format(**words)) for finding in found]


def in_nnunet(raw_folder: str) -> Sequence[str]:
    """What to do about any wrong label in nnU-Net, in two sentences."""
    return (
        f'Which files and slices: `mmguard scan {raw_folder}`.',
        'Then correct the label files (or dataset.json) and preprocess again.',
    )
