"""Errors of the CUDA device. A kernel runs later than the line that asked for it, and so fails under another line."""

from __future__ import annotations

from mmguard.findings.signatures.signature import KERNEL, Cause, Signature

_SCAN = 'mmguard scan CONFIG'

#: Labels that a kernel refuses, the likeliest first: the same causes as on the CPU.
LABEL_CAUSES = (
    Cause(
        'The label files hold values that are no class: raw ids of a data set, gray levels, colours, or 0/255 masks.',
        ('MG101', 'MG103', 'MG106', 'MG117', 'MG119', 'MG125', 'MG136', 'MG137', 'MG118'),
        tell='The scan lists every value in the files; with a handful of classes there must be as many values.',
    ),
    Cause(
        'num_classes is too small: the background was not counted, or the labels count from 1.',
        ('MG102', 'MG107', 'MG108', 'MG115', 'MG116', 'MG138', 'MG201'),
        tell='The highest label equals num_classes.',
    ),
    Cause(
        'Ignored pixels have a value that the loss does not ignore (255 from padding, ignore_index=-100).',
        ('MG104', 'MG105', 'MG133', 'MG208'),
        tell='255, 254 or -1 is the only invalid value.',
    ),
    Cause(
        'A few files hold a stray value: a slip of the annotator.',
        ('MG127',),
        tell='The error comes after many good iterations, and not at the same one with another seed.',
    ),
)

SIGNATURES = (
    Signature(
        'MG402',
        'A kernel of the cross entropy met a target that is no class (`t >= 0 && t < n_classes`).',
        # What the CPU of old versions asserts says where: failed. at .../ClassNLLCriterion.c:93.
        r'Assertion.{0,8}(?:cur_target|t) >= 0 && (?:cur_target|t) < n_classes'
        r'(?!.{0,12}failed\.? +at \S+\.c(?:pp)?:\d)',
        'The loss was given a label below 0 or of at least num_classes, and not ignore_index. The kernel is the one '
        'of nll_loss; the line that Python shows is only the next one that waited for the device.',
        LABEL_CAUSES,
        _SCAN,
        bare=True,
        stage=KERNEL,
    ),
    Signature(
        'MG403',
        'A kernel that indexes met an index outside the tensor (IndexKernel).',
        r'(?:IndexKernel|IndexingUtils|index_elementwise|indexing_backward).{0,300}index out of bounds'
        r'|-sizes\[i\] <= index && index < sizes\[i\]|index >= -sizes\[i\] && index < sizes\[i\]',
        'Somewhere `tensor[index]` was written with an index that is too large. With labels this is mostly '
        '`class_weight[label]`, or the matcher of a DETR-like model that picks the score of each label.',
        (
            Cause(
                'class_weight is looked up by label, and an ignored pixel (255) is looked up as well: '
                "MMSegmentation's CrossEntropyLoss does that.",
                ('MG214', 'MG216'),
                clue=r'cross_entropy_loss|avg_factor|losses.accuracy|mmsegmentation|mmseg[/.]',
                tell='Without class_weight it trains.',
            ),
            Cause(
                'Category ids (1..N, or with gaps) are used as labels; the scores have N columns.',
                ('MG138', 'MG117', 'MG115', 'MG116', 'MG137', 'MG202'),
                clue=r'matcher|hungarian|detr|dfine|d_fine|deim|criterion|remap_mscoco|category|boxes1|box_ops',
                tell='The highest category id is at least num_classes.',
            ),
            Cause(
                'class_weight has too few entries for the labels.',
                ('MG207',),
                clue=r'class_weight|mask2former|maskformer',
            ),
            *LABEL_CAUSES[:2],
        ),
        _SCAN,
        bare=True,
        stage=KERNEL,
    ),
    Signature(
        'MG404',
        'A kernel that gathers or scatters met an index outside the tensor (ScatterGatherKernel).',
        r'ScatterGatherKernel.{0,300}index out of bounds|idx_dim >= 0 && idx_dim < index_size'
        r'|indexValue >= 0 && indexValue <',  # THC's, in old torch
        'A label was used as a column: for a one-hot target (Dice, focal and Lovasz losses, metrics), or to pick the '
        'score of the right class (OHEM).',
        (
            Cause(
                'Labels have a gap or are raw ids: consecutive integers from 0 are needed.',
                ('MG116', 'MG118', 'MG185', 'MG181', 'MG101', 'MG137', 'MG138', 'MG117', 'MG115'),
                clue=r'nnunet|KiTS|BraTS|dataset\.json|matcher|detr',
                tell='The values in the files are not 0, 1, 2, ... without a gap.',
            ),
            Cause(
                'Ignored pixels (255) are made one-hot before they are masked.',
                ('MG104', 'MG208', 'MG219'),
                clue=r'[Dd]ice|one_?hot|scatter_',
                tell='The error needs Dice, a focal loss or a metric; plain cross entropy trains.',
            ),
            Cause(
                'One output channel and labels 0 and 1: the softmax has one column only.',
                ('MG215', 'MG102'),
                clue=r'ohem|sampler|out_channels=1',
                tell='out_channels or num_classes is 1.',
            ),
            *LABEL_CAUSES,
        ),
        _SCAN,
        bare=True,
        stage=KERNEL,
    ),
    Signature(
        'MG405',
        'The binary cross entropy met scores or targets outside 0..1 (`input_val >= zero`).',
        r'input_val >= zero && input_val <= one|target_val >= zero && target_val <= one'
        r'|all elements of (?:input|target) should be between 0 and 1|Assertion.{0,5}x >= 0\.? && x <= 1',
        'binary_cross_entropy takes probabilities. It was given scores without a sigmoid, or NaN.',
        (
            Cause(
                'The predictions are NaN or infinite: training diverged before.',
                clue=r'\bnan\b|overflow',
                tell='The loss of the iterations before is nan, or grows without end.',
            ),
            Cause('No sigmoid: use binary_cross_entropy_with_logits.', tell='It fails in the first iteration.'),
            Cause(
                'The targets are 0/255, or class indices, not 0/1.',
                ('MG103', 'MG123'),
                clue=r'target_val|of target should',
                tell='The message names the target.',
            ),
        ),
        _SCAN,
        bare=True,
        stage=KERNEL,
    ),
    Signature(
        'MG406',
        'An index is outside the table in which rows are looked up (embedding, index_select).',
        r'srcIndex < srcSelectDimSize|IndexError: index out of range in self|index out of range: Tried to access index'
        r'|(?:Indexing|Embedding)\w{0,60}\.cu.{0,300}Assertion'
        r'|input\[.{0,20}\] .{0,20}num_weights',
        'A label or a token is used as a row of an embedding (label embeddings of DETR-like denoising, text tokens) '
        'that has fewer rows.',
        (
            Cause(
                'Category ids are used as labels, and the label embedding has num_classes (+1) rows.',
                ('MG138', 'MG117', 'MG115', 'MG137'),
                clue=r'denois|label_enc|label_embed|class_embed|dn_|category',
                tell='The highest category id is above num_classes.',
            ),
            Cause(
                'Tokens are outside the vocabulary, or a sequence is longer than the positions.',
                clue=r'token|vocab|position_embed|word_embed|input_ids',
                tell='len(tokenizer) differs from model.config.vocab_size.',
            ),
            *LABEL_CAUSES[:2],
        ),
        _SCAN,
        bare=True,
        stage=KERNEL,
    ),
    Signature(
        'MG407',
        'one_hot met labels that it cannot encode.',
        r'OneHot\w{0,60}\.cu.{0,300}Assertion|Assertion.{0,40}(?:num_classes|n_class(?!es)).{0,60}failed'
        r'|Class values must be (?:non-negative|smaller than num_classes)'
        r'|Class Index must be less than number of classes',
        'one_hot(labels, num_classes) needs labels from 0 to num_classes - 1.',
        (
            Cause(
                'The label of an image is no class of an MMPretrain head (MixUp and CutMix meet it before any loss): '
                'put GuardClsLabels behind PackInputs.',
                ('MG107', 'MG108', 'MG102'),
                clue=r'label_to_onehot|mmpretrain.models.losses|Class Index must be',
                tell='The lines of the annotation file, or the folders of the classes, show it.',
            ),
            Cause(
                'Ignored pixels (255) are made one-hot.',
                ('MG104', 'MG208', 'MG219'),
                clue=r'\b255\b|ignore|[Dd]ice',
                tell='Where the class of the loss is Dice, it replaces the ignored value too late or not at all.',
            ),
            Cause(
                'Labels are below 0 (-1): an ignored value, or 1 subtracted twice.',
                ('MG105',),
                clue=r'non-negative',
                tell='The message says non-negative.',
            ),
            Cause(
                'Category ids (1..N) are used as labels.',
                ('MG138', 'MG117', 'MG115'),
                clue=r'bbox|detr|focal|retina|category',
                tell='The highest id equals num_classes.',
            ),
            *LABEL_CAUSES[:2],
        ),
        _SCAN,
        bare=True,
        stage=KERNEL,
    ),
    Signature(
        'MG409',
        'Probabilities are NaN, infinite or negative.',
        r'probability tensor contains either `?inf`?, `?nan`? or element < 0|invalid multinomial distribution'
        r'|_assert_async_cuda_kernel',
        'Sampling from a distribution that is not one: the scores were NaN before.',
        (
            Cause(
                'Training diverged: lr too high, half precision without scaling.',
                clue=r'nan|fp16|amp',
                tell='Losses before are nan.',
            ),
            Cause('All weights are zero: nothing to sample from (no valid label).', ('MG128', 'MG146')),
        ),
        _SCAN,
        bare=True,
        stage=KERNEL,
    ),
    Signature(
        'MG401',
        'CUDA error: device-side assert triggered.',
        r'[Dd]evice-side assert|cudaErrorAssert|CUDA error\s?\(?(?:59|710)\)?\b',
        'A kernel refused what it was given: nearly always a label or an index out of range. The line that is shown '
        'is not the one that failed, only the first that waited for the device. Which kernel it was is said by a line '
        'with `Assertion ... failed` further up, which is missing here.',
        (
            *LABEL_CAUSES,
            Cause(
                "class_weight with MMSegmentation's CrossEntropyLoss: the weights are looked up by label, and the "
                'ignored 255 is looked up as well.',
                ('MG214', 'MG216', 'MG207'),
                clue=r'class_weight|mmseg[/.].{0,80}(?:losses|accuracy)|mmsegmentation',
                tell='Without class_weight it trains.',
            ),
            Cause(
                'Category ids are used as labels and reach beyond num_classes; the assertion about boxes is only where '
                'Python noticed.',
                ('MG138', 'MG117', 'MG115', 'MG116', 'MG137'),
                clue=r'generalized_box_iou|matcher|detr|boxes1|assigner|gt_labels|[Cc]ategory',
                tell='The highest category id is at least num_classes.',
            ),
            Cause(
                'With OHEM: labels are gathered as columns, and ignored or out-of-range ones with them.',
                ('MG219', 'MG215'),
                clue=r'ohem',
                tell='Without the sampler it trains.',
            ),
        ),
        _SCAN,
        bare=True,
    ),
    Signature(
        'MG408',
        'CUDA error: an illegal memory access was encountered.',
        r'[Ii]llegal memory access|cudaErrorIllegalAddress|CUDA error\s?\(?(?:77|700|719)\)?\b'
        r'|unspecified launch failure',
        'A kernel without checks read outside a tensor. With labels this is what an index out of range does in custom '
        'kernels and old versions of torch; the line that is shown is not the one that failed.',
        (
            *LABEL_CAUSES,
            Cause(
                'Ignored pixels (255) are made one-hot before they are masked (Dice).',
                ('MG104', 'MG208'),
                clue=r'one_?hot|[Dd]ice',
                tell='Plain cross entropy trains.',
            ),
            Cause(
                'A custom operation (mmcv, deformable attention) was compiled for another torch or device.',
                clue=r'mmcv[/.](?:ops|_ext)|ms_deform|_ext\b|deform',
                tell='It fails with official data as well; `mmguard env` names the versions.',
            ),
        ),
        _SCAN,
        bare=True,
    ),
    Signature(
        'MG411',
        'cuBLAS or cuDNN failed.',
        r'CUBLAS_STATUS_\w+|CUDNN_STATUS_\w+|cuDNN error',
        'Mostly not a fault of these libraries: an assert of a kernel before it, or memory that ran out.',
        (
            Cause(
                'A label out of range in the iteration: the failed assert of an earlier kernel shows here.',
                ('MG101', 'MG102', 'MG103', 'MG104', 'MG106', 'MG107', 'MG115', 'MG138', 'MG214'),
                clue=r'[Aa]ssert|loss',
                tell='With CUDA_LAUNCH_BLOCKING=1, or on the CPU, the error is another one.',
            ),
            Cause('The device has no memory left.', clue=r'ALLOC_FAILED|memory', tell='A smaller batch trains.'),
            Cause(
                'Driver, CUDA and cuDNN do not fit together.', clue=r'NOT_INITIALIZED|VERSION_MISMATCH|NOT_SUPPORTED'
            ),
        ),
        'CUDA_LAUNCH_BLOCKING=1 and the same command; then mmguard scan CONFIG',
        bare=True,
    ),
)
