"""NaN, infinity, and what comes of them."""

from __future__ import annotations

from mmguard.findings.signatures.signature import Cause, Signature

_SCAN = 'mmguard scan CONFIG'
_DIVERGED = Cause(
    'Training diverged: the learning rate is too high for the batch size, there is no warm-up, no gradient clipping, '
    'or half precision overflows.',
    (),
    clue=r'\bnan\b.{0,200}lr|grad_norm: (?:nan|inf)|loss[^\n]{0,40}: nan|amp|fp16|autocast',
    tell='The loss grew over some iterations before; a lower rate, or no half precision, trains.',
)
_BOXES = Cause(
    'Boxes that are not finite, have no area or lie outside the image.',
    ('MG109', 'MG152', 'MG172', 'MG173'),
    tell='The scan names the files.',
)
_EMPTY_MEAN = Cause(
    'A mean over nothing: every label of a batch is ignored.',
    ('MG128', 'MG103', 'MG124', 'MG211', 'MG208'),
    tell='It comes and goes with single batches; the other losses are finite.',
)

SIGNATURES = (
    Signature(
        'MG445',
        'An assertion about boxes failed (x2 >= x1, y2 >= y1): generalized IoU.',
        r'boxes1\[:, 2:\] >= boxes1\[:, :2\]|boxes2\[:, 2:\] >= boxes2\[:, :2\]'
        r'|(?:boxes1|boxes2|pred_boxes).{0,60}(?:corner|xyxy|x0, ?y0|\[x1, y1, x2, y2\])',
        'A box ends before it begins, or is NaN: comparisons with NaN are false. Without a device-side assert in the '
        'log predictions or targets are really so; with one this line is only where Python noticed.',
        (
            Cause(
                'A label out of range ended a kernel before: category ids are used as labels.',
                ('MG138', 'MG117', 'MG115', 'MG137', 'MG116'),
                clue=r'device-side assert|CUDA error|Assertion `',
                tell='The log has lines with `Assertion ... failed`.',
            ),
            Cause(
                'The predictions are NaN: training diverged. Lower the learning rate, clip gradients, or train without '
                'half precision.',
                (),
                # The matcher and the losses of DETR-like models pass the predictions first.
                clue=r'\bnan\b|\[epoch|Epoch: \[(?:[1-9]|\d\d)|it/s|grad_norm|boxes1\[:, 2:\] >= boxes1',
                tell='It comes after many good iterations, and torch.isnan(pred_boxes).any() is true.',
                against=r'device-side assert|CUDA error|Assertion `',
            ),
            Cause(
                'The boxes of the annotations have another format: two corners where x, y, width, height are wanted.',
                ('MG172', 'MG173', 'MG109'),
                clue=r'boxes2',
                tell='It fails in the first iteration.',
            ),
        ),
        _SCAN,
    ),
    Signature(
        'MG443',
        'The training script stopped because the loss is NaN or infinite.',
        r'[Ll]oss is (?:nan|inf|NaN|\{).{0,40}stopping|Loss became infinite or NaN|[Ll]oss is (?:nan|NaN|inf)'
        r'|FloatingPointError:|[Ll]oss (?:is|was) not finite|loss exploded',
        'Its own check found that the loss is not finite.',
        (_DIVERGED, _BOXES, _EMPTY_MEAN),
        _SCAN,
        bare=True,
    ),
    Signature(
        'MG442',
        'The loss in the log is nan or inf.',
        r'\bloss(?:_\w+|/\w+)?["\']?\s?[:=]\s?(?:-?inf|nan|NaN)\b',
        'From there on every weight is NaN: what training shows afterwards means nothing.',
        (
            Cause(
                'Only one of the losses is NaN: its targets are the cause.',
                ('MG109', 'MG128', 'MG172', 'MG146'),
                clue=r'(?:loss_|rpn_?)(?:bbox|box|rpn_bbox|iou|mask|centerness|loss_box)\w{0,60}: nan',
                tell='The log line names the loss.',
            ),
            _DIVERGED._replace(clue=r'grad_norm: (?:nan|inf)|amp|fp16|autocast|overflow'),
            _BOXES,
            _EMPTY_MEAN,
        ),
        _SCAN,
        bare=True,
    ),
    Signature(
        'MG444',
        'The matcher cannot assign: its costs are NaN or infinite.',
        r'matrix contains invalid numeric entries|cost matrix is infeasible|Tensor.{0,30}NaN.{0,40}linear_sum',
        'linear_sum_assignment was given NaN: scores or boxes of the prediction, or boxes of the target.',
        (
            _DIVERGED,
            _BOXES,
            Cause('The images hold NaN, or std of the normalisation is 0.', ('MG187',), clue=r'normali[sz]e|std'),
        ),
        _SCAN,
    ),
    Signature(
        'MG447',
        'A division by zero.',
        r'ZeroDivisionError:',
        'A count is 0: valid labels, images or iterations.',
        (
            Cause(
                'Every label of an image or a batch is ignored, and a loss divides by their count.',
                ('MG128', 'MG103', 'MG124', 'MG211'),
                clue=r'loss|cross_entropy|avg_factor|weight_reduce|ignore',
                tell='It comes at single batches.',
            ),
            Cause(
                'The data set or the loader is empty.',
                ('MG140', 'MG145', 'MG150', 'MG174', 'MG129'),
                clue=r'len\(|data_?loader|epoch_len|num_batches|max_iters|samples',
                tell='It comes before the first iteration.',
            ),
        ),
        _SCAN,
    ),
    Signature(
        'MG448',
        'NaN or infinity was found where a number is needed.',
        r'cannot convert float (?:NaN|infinity) to integer|Input (?:X |y_\w+ )?contains (?:NaN|infinity)'
        r'|array must not contain infs or NaNs|Image data of dtype \w+ cannot be converted'
        r"|Function '\w+' returned nan values in its \d+th output"
        r'|Expected (?:parameter|value argument) .{0,300}(?:Simplex|Real|constraint)|found invalid values'
        r'|[Ii]nvalid value encountered in .{0,20}(?:box|rpn)|Predicted boxes or scores contain Inf/NaN',
        'A value that is not finite reached a place that takes none: sizes of boxes, a metric, a distribution, or a '
        'gradient that anomaly detection names.',
        (_BOXES, _DIVERGED, _EMPTY_MEAN, Cause('The label maps hold NaN.', ('MG187', 'MG186', 'MG123'))),
        _SCAN,
    ),
)
