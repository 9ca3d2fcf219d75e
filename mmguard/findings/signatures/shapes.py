"""Shapes, types and channels that do not fit."""

from __future__ import annotations

from mmguard.findings.signatures.signature import Cause, Signature

_SCAN = 'mmguard scan CONFIG'
_THREE_CHANNELS = Cause(
    'Label files have three channels: colours instead of class indices, or a palette file that is read as colours.',
    ('MG120', 'MG121'),
    clue=r'\b3\]|dimension: [45]|size is 3|, 3\)',
    tell='`PIL.Image.open(file).mode` is RGB or RGBA; a palette file has mode P.',
)
_EXTRA_DIMENSION = Cause(
    'The target has a channel of one, (N, 1, H, W): a class-index loss wants (N, H, W), so `target.squeeze(1)`.',
    ('MG123',),
    clue=r', 1, \d+, \d+\]|dimension: 4',
    tell='The second number of its shape is 1.',
)

SIGNATURES = (
    Signature(
        'MG424',
        'class_weight has not one entry per class.',
        r'weight tensor should be defined either for all|weight\.size\(0\) != n_classes'
        r'|same length as num(?:ber of)? ?classes'
        r'|weight tensor.{0,60}number of classes',
        'The number of weights is not the number of output channels: they must be equal, detection heads of the DETR '
        'family need one more, for "no object".',
        (
            Cause(
                'num_classes was changed and class_weight was not (or the other way round).',
                ('MG207', 'MG201'),
                tell='The two numbers of the message.',
            ),
            Cause(
                'A head that predicts "no object" needs num_classes + 1 weights.',
                ('MG207',),
                clue=r'mask2former|maskformer|detr|no.object|bg_cls_weight',
            ),
            Cause('Tables of another data set (label mapping, weights) were kept.', ('MG207', 'MG101')),
        ),
        'mmguard check CONFIG',
    ),
    Signature(
        'MG425',
        'The target has a dimension too many for a loss over class indices.',
        r'only batches of spatial targets supported|multi-target not supported|expected (?:1D|target).{0,40}multi'
        r'|0D or 1D target tensor expected|Input and output must have the same number of spatial dimensions'
        r'|Input is 2D, size is 3|Expected 3D or 4D \(batch mode\) tensor'
        r'|Got \d+D input, but .{0,20}mode needs \dD input',
        'The loss wants one class index per pixel, (N, H, W), or per sample, (N,); interpolate(size=label.shape[...]) '
        'wants two numbers.',
        (
            _THREE_CHANNELS,
            _EXTRA_DIMENSION,
            Cause(
                'The target is one-hot: `target.argmax(1)`, or give it as float probabilities.', clue=r'multi-target'
            ),
        ),
        _SCAN,
    ),
    Signature(
        'MG426',
        'Predictions and target have different sizes.',
        r'size mismatch \(got input|Expected target size|input and target batch or spatial sizes don.t match'
        r'|Expected input batch_size \(\d+\) to match target batch_size'
        r'|Target size \(torch\.Size.{0,60}must be (?:the same|broadcastable)|Expected target of size'
        r'|[Pp]redictions and targets? .{0,40}same shape',
        'Every prediction needs its label: same number of samples, same height and width (or, for binary losses, the '
        'same shape altogether).',
        (
            Cause(
                'Label maps have another size than their images.',
                ('MG130', 'MG129'),
                clue=r'spatial|size',
                tell='The scan compares both with --images.',
            ),
            Cause(
                'A binary loss is given class indices (N, H, W) beside scores (N, 1, H, W): `target.unsqueeze(1)`.',
                ('MG215',),
                clue=r'must be the same|broadcastable|\[\d+, 1, \d+, \d+\]',
                tell='The shapes differ by a 1.',
            ),
            _THREE_CHANNELS,
            Cause('The scores are not resized to the label.', tell='Their ratio is 4, 8 or 16.'),
        ),
        _SCAN,
    ),
    Signature(
        'MG428',
        'The loss is not made for the type of the target.',
        r'not implemented for .{0,2}(?:Int|Byte|Char|Short|Long|Half|Bool|Float|Double)\b'
        r'|expected scalar type \w+ but found \w+|expected target dtype to be|Expected object of (?:scalar )?type \w+'
        r"|Expected floating point type for target|result type Float can't be cast"
        r'|Found dtype (?:Long|Byte|Int|Bool|Double) but expected'
        r'|Subtraction, the `-` operator, with (?:a|two) bool tensor',
        'Class indices must be int64 (`target.long()`); binary targets must be float like the scores.',
        (
            Cause(
                'The mask comes as uint8 or int32 from numpy: `.long()`.',
                clue=r"'(?:Int|Byte|Short|Char)'|(?:found|got) (?:Int|Byte|Short)",
            ),
            Cause(
                'The mask went through an image transform (ToTensor, Normalize) and is float: fractions of 255.',
                ('MG123',),
                clue=r'(?:found|got) (?:Float|Double)|for target with class prob|scalar type Long',
                tell='Its values lie between 0 and 1.',
            ),
            Cause(
                'A binary loss is given integers: `target.float()`, and check that its values are 0 and 1.',
                ('MG103',),
                clue=r'result type|Found dtype|Subtraction',
            ),
        ),
        _SCAN,
    ),
    Signature(
        'MG432',
        'Two tensors cannot be combined: a dimension differs.',
        r'The size of tensor a \(\d+\) must match the size of tensor b \(\d+\)'
        r'|The expanded size of the tensor|shape mismatch: (?:value tensor|indexing tensors)'
        r'|The size of tensor .{0,40}does not match|Sizes of tensors must match except|same number of dimensions: got'
        r'|is invalid for input of size|output with shape .{0,80}broadcast shape',
        'Channels, classes or sizes of predictions and labels differ.',
        (
            Cause(
                'num_classes of one part is not that of another (head, loss, target, weights).',
                ('MG201', 'MG228', 'MG207', 'MG225'),
                clue=r'loss|dice|one_hot|sigmoid',
            ),
            Cause('Label maps have another size than the images.', ('MG130', 'MG129')),
            _THREE_CHANNELS,
            _EXTRA_DIMENSION,
        ),
        _SCAN,
    ),
    Signature(
        'MG433',
        'A label or image has not the dimensions that are unpacked.',
        r'(?:too many|not enough) values to unpack',
        'A shape was unpacked as two numbers (height, width), and has three, or the other way round.',
        (_THREE_CHANNELS, Cause('An image is gray where colours are expected.', ('MG131',), clue=r'not enough')),
        _SCAN,
    ),
    Signature(
        'MG434',
        'The samples of a batch have different sizes.',
        r'stack expects each tensor to be equal size|each element in list of batch should be of equal size'
        r'|all input arrays must have the same shape|inhomogeneous shape'
        r'|Trying to resize storage that is not resizable',
        'A batch is one tensor: images and labels of all its samples must have the same size.',
        (
            Cause('No crop or resize to a fixed size in the pipeline.', tell='With a batch of one it trains.'),
            Cause('Labels have another size than their images.', ('MG130',)),
            Cause('Some label files have three channels, others one.', ('MG120', 'MG121')),
            Cause(
                'Numbers of boxes differ: a collate_fn that returns lists is needed.', clue=r'\[\d+, 4\]|boxes|collate'
            ),
        ),
        _SCAN,
    ),
    Signature(
        'MG437',
        'A mask or an array has another shape than what it is applied to.',
        r'boolean index did not match|operands could not be broadcast together|The shape of the mask'
        r'|could not broadcast input array',
        'Two arrays that should have one shape have two.',
        (
            Cause('Label maps have another size than the images.', ('MG130', 'MG129')),
            Cause('Label files have three channels.', ('MG120', 'MG121'), clue=r',3\)'),
            Cause('The prediction was not resized to the size of the label.'),
        ),
        _SCAN,
    ),
    Signature(
        'MG441',
        'The loss has no graph: backward has nothing to go back through.',
        r'does not require grad and does not have a grad_fn|No inf checks were recorded'
        r'|grad can be implicitly created only',
        'The loss is a constant, or not a scalar.',
        (
            Cause(
                'Every label of the batch is ignored, or no image has an object, and the loss returns a constant.',
                ('MG128', 'MG146', 'MG218', 'MG174', 'MG103'),
                clue=r'does not require grad|No inf checks',
                tell='It trained for a while.',
            ),
            Cause('All parameters are frozen.', tell='It fails in the first iteration.'),
            Cause("reduction='none' without a mean.", clue=r'scalar outputs'),
        ),
        _SCAN,
    ),
)
