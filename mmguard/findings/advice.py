"""The advice of causes in the words of who trains: that of the causes themselves names config keys of OpenMMLab."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, List, Sequence

from mmguard.findings.engine import diagnose
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import Finding
from mmguard.findings.known_sets import COCO_STUFF_CLASSES, VOID_BEHIND
from mmguard.findings.rule import common_words
from mmguard.findings.rules import RULES
from mmguard.findings.views import VOID, ids_of, is_whole

#: Who may have written the record of a run.
OPENMMLAB, PYTORCH, NNUNET = FRAMEWORKS = ('openmmlab', 'pytorch', 'nnunet')

#: With fewer ids in a batch nothing is said of the data set that they may be of.
MANY_IDS = 8

#: What to write in a PyTorch loop about class indices. One batch cannot show a cause that is not here (a class
#: that is missing in it says nothing).
OF_BATCHES: Dict[str, str] = {
    'MG101': "Use the *_gtFine_labelTrainIds.png files, or torchvision's Cityscapes.classes[i].train_id as a table.",
    'MG102': '{ways}',
    'MG103': 'Foreground is 255 here, and is to be 1: target = (target > 0).long().',
    'MG104': (
        'If 255 is void, or the fill value of padding or of a rotation: ignore_index=255, the same in loss, metric and '
        'transforms.'
    ),
    'MG105': '{marks}; if 1 was subtracted from ids that count from 0: do not.',
    'MG106': 'Load the masks as class indices: single-channel PNG, never JPEG; colours need a table to classes.',
    'MG107': 'Classes are 0..{last}: look at where these values come from{outputs}{known}.',
    'MG115': 'Subtract one: target = target - 1.',
    'MG117': (
        'Write the maps anew with class indices (COCO-Stuff: the *_labelTrainIds.png, 171 classes and 255), or take a '
        'table from id to class where they are read; if 1 is subtracted, do not: COCO-Stuff needs no shift.'
    ),
    'MG118': 'Renumber: target = target.masked_fill(target == 4, 3).',
    'MG119': 'Subtract one and ignore what was 0: target = target - 1, ignore_index=-1.',
    'MG121': (
        'If the files are palette PNGs, read their indices: np.array(Image.open(path)), neither cv2.imread nor '
        '.convert("L"); map no levels to classes: several colours share one.'
    ),
    'MG125': (
        'Map each gray level to its class, by one table for all files: no batch holds every level; `mmguard scan '
        'FOLDER --num-classes {num_classes}` counts the levels of all.'
    ),
    'MG133': (
        'If the ids count from 1, subtract 1 from classes alone: target = torch.where(target == 255, 255, target - 1), '
        'ignore_index=255; if they count from 0: no shift{known}.'
    ),
    'MG136': (
        'Resize masks with nearest alone: torch.nn.functional.interpolate(mask, size, mode="nearest"), '
        'InterpolationMode.NEAREST in torchvision{threshold}.'
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
    'MG117': 'Renumber the ids: label_of = {{cat_id: i for i, cat_id in enumerate(sorted(cat_ids))}}.',
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
        return [replace(finding, advice=advice) for finding in diagnose(facts)]
    if framework == PYTORCH:
        return in_pytorch(facts, OF_TARGETS if facts.kind == 'instances' else OF_RUNS)
    return diagnose(facts)


def in_pytorch(facts: LabelFacts, advice: Dict[str, str]) -> List[Finding]:
    """The findings for which there is advice: code -> template."""
    words = {
        **common_words(facts),
        'ways': f'If {"; if ".join(_ways_of_one_more(facts))}.',
        'marks': _marks(facts),
        'outputs': _outputs(facts),
        'known': _known_ids(facts),
        'threshold': '; of 0/255 masks for two classes make 0 and 1 then: (target > 127).long()' * _is_binary(facts),
        'beyond': max(facts.values, default=0) + 1,
    }
    found = diagnose(facts, rules=[rule for rule in RULES if rule.code in advice])
    return [replace(finding, advice=advice[finding.code].format(**words)) for finding in found]


def _ways_of_one_more(facts: LabelFacts) -> List[str]:
    """What a single value behind the last class may be, the likeliest first; nothing that the others rule out."""
    number = facts.num_classes
    void = [] if _ignores_any(facts) else [f'{number} is void: ignore_index={number}']
    lacks = [f'it is a class, the model lacks one (often the background was not counted): {number + 1} outputs']
    if not is_whole(facts):
        return [*void, 'the ids count from 1: target - 1', *lacks]
    if 0 not in facts.histogram:
        return ['the ids count from 1: target - 1', *lacks, *void]
    return [*void, *lacks] if number in VOID_BEHIND else [*lacks, *void]


def _marks(facts: LabelFacts) -> str:
    least = min(facts.values, default=0)
    if _ignores_any(facts):
        return f'{least} is no class, and {facts.ignore_index} is ignored already: look at where {least} comes from'
    return f'If {least} means ignored: ignore_index={least}'


def _outputs(facts: LabelFacts) -> str:
    """How many the model needs, where the labels simply go on behind its classes."""
    number = max(facts.values, default=0) + 1
    goes_on = number <= 2 * facts.num_classes and set(facts.histogram) == set(range(number))
    return f'; if all of them are classes: {number} outputs' if goes_on else ''


def _known_ids(facts: LabelFacts) -> str:
    """What is to be asked where the values of a batch may be those of COCO-Stuff: one batch is no proof."""
    ids = ids_of(facts.histogram) - {VOID - 1}
    gaps = set(range(max(COCO_STUFF_CLASSES))) - set(COCO_STUFF_CLASSES)
    fits = any(not ids & {gap + shift for gap in gaps} for shift in (-1, 0, 1))
    if not fits or len(ids) < MANY_IDS or not len(COCO_STUFF_CLASSES) <= max(ids) <= max(COCO_STUFF_CLASSES) + 1:
        return ''
    return (
        '; these may be ids of COCO-Stuff, which go to 182 with gaps: it has 171 classes (train ids 0..170, 255 is '
        'void), in its *_labelTrainIds.png, and wants no shift by one'
    )


def _is_binary(facts: LabelFacts) -> bool:
    """Whether a batch for two classes holds values up to 255: it is drawn in black and white."""
    return is_whole(facts) and facts.num_classes == 2 and max(facts.histogram) > VOID // 2


def _ignores_any(facts: LabelFacts) -> bool:
    """Whether the ignored label is known to occur: the histogram leaves it out."""
    return is_whole(facts) and sum(facts.histogram.values()) < facts.total


def in_nnunet(raw_folder: str) -> Sequence[str]:
    """What to do about any wrong label in nnU-Net, a sentence in two lines."""
    return (
        f'Which files and slices: `mmguard scan {raw_folder}`;',
        'then correct the label files (or dataset.json) and preprocess again.',
    )
