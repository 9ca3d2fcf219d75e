"""Checkpoints and configs that do not fit."""

from __future__ import annotations

from mmguard.findings.signatures.signature import Cause, Signature

SIGNATURES = (
    Signature(
        'MG487',
        'Weights of a checkpoint have another shape than the model.',
        r'size mismatch for \S+: copying a param|copying a param with shape'
        r'|shape mismatch.{0,60}(?:state_dict|checkpoint)'
        r'|ignore_mismatched_sizes',
        'The last layer has as many rows as classes: a checkpoint of another num_classes does not fit.',
        (
            Cause(
                'num_classes was changed: load as a start (`load_from`), not to go on (`resume`); in plain torch leave '
                'these keys out; in transformers ignore_mismatched_sizes=True.',
                ('MG201',),
                clue=r'conv_seg|fc_cls|cls_|class_embed|classifier|head|logits|num_classes',
                tell='Only layers that predict classes are named.',
            ),
            Cause('Another backbone or depth.', clue=r'backbone|layer\d', tell='Layers of the backbone are named.'),
        ),
        'mmguard check CONFIG',
    ),
    Signature(
        'MG491',
        'A type of the config is not registered.',
        r"is not in the \S+ registry|is not in the \S{1,80}::\S{1,80} registry|KeyError: '\w+ is not in the",
        'Nobody imported the module that defines it, or the scope is wrong.',
        (
            Cause(
                "custom_imports is missing: `custom_imports = dict(imports=['mmguard'])` for what begins with Guard.",
                clue=r'Guard',
                unless=r'\bimports\b\W{1,40}mmguard| - guard: |\bmmguard/\w+',  # the log shows that it is there
            ),
            Cause(
                'A name of mmguard is misspelt. X becomes GuardedX for every loss of the frameworks; any other loss is '
                "wrapped: `dict(type='GuardedLoss', loss=dict(type='MyLoss', ...))`.",
                ('MG250',),
                clue=r'\bG(?!rad)[uar]{2,4}d\w* is not in',
            ),
            Cause('A scope is missing: mmdet.TYPE in a config of mmseg.', clue=r'mmseg|mmdet|mmengine'),
            Cause('A config for MMDetection 2.x or MMSegmentation 0.x.', ('MG227',)),
        ),
        'mmguard check CONFIG',
    ),
    Signature(
        'MG492',
        'A type of the config does not take one of its arguments.',
        r'got an unexpected keyword argument|missing \d+ required (?:positional|keyword-only) argument',
        'Written for another version, or misspelled.',
        (
            Cause(
                'A config for MMDetection 2.x or MMSegmentation 0.x (classes=, pipeline names).',
                ('MG227', 'MG203'),
                clue=r'classes|img_norm_cfg|samples_per_gpu',
            ),
            Cause('A wrapper that takes no metainfo.', ('MG203',), clue=r'metainfo'),
            Cause('An argument left over from the base config: `_delete_=True`.'),
        ),
        'mmguard check CONFIG',
        place=r'registry|build_from_cfg|build_functions|\.build\(|runner\.py|config',
    ),
)
