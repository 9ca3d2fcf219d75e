"""Targets and indices out of range, as the CPU says it."""

from __future__ import annotations

from mmguard.findings.signatures.device import LABEL_CAUSES
from mmguard.findings.signatures.signature import Cause, Signature

_SCAN = 'mmguard scan CONFIG'
#: A call of a loss in the log that names the refused value as its ignore_index.
_REFUSES_IGNORED = (
    r'\A(?=[\s\S]*(?:cross_entropy|nll_loss|CrossEntropyLoss|NLLLoss)\w{0,60}\([^\n]{0,1000}ignore_index=(-?\d+)\b)'
    r'(?=[\s\S]*[Tt]arget \1\b)'
)
_NOT_IGNORED = Cause(
    'The value is one that was meant to be ignored, and the loss ignores another: 255 of padding or void beside '
    'ignore_index=-100.',
    ('MG104', 'MG208', 'MG103'),
    clue=r'[Tt]arget 255\b|index 255\b|index 254\b',
    tell='The value is 255.',
    against=_REFUSES_IGNORED,
)
_NEGATIVE = Cause(
    'Labels below 0: -1 of another framework for "ignored", or 1 subtracted twice.',
    ('MG105', 'MG133', 'MG124', 'MG210', 'MG211'),
    clue=r'[Tt]arget -\d|index -\d',
    tell='The value is negative.',
)
_CATEGORY_IDS = Cause(
    'Category ids are used as labels: they count from 1 or have gaps.',
    ('MG138', 'MG117', 'MG115', 'MG137', 'MG202', 'MG102'),
    clue=r'matcher|cost_class|tgt_ids|one_hot_embedding|category|detr|bbox|annotation',
    tell='The highest category id is at least num_classes.',
)
_ONE_TOO_MANY = Cause(
    'num_classes is one too small (the background was not counted), or labels count from 1.',
    ('MG102', 'MG115', 'MG138', 'MG108', 'MG202'),
    clue=r'index (\d+) is out of bounds for (?:dimension|axis) \d+ with size \1\b|[Tt]arget [12] is out of bounds'
    r'|range: (\d+) found while n_classes is \2\b',
    tell='The value equals num_classes.',
)
_COLOURS = Cause(
    'The masks have a palette, and cv2.imread reads its colours: read with np.array(Image.open(path)), or write them '
    'anew as plain gray PNG that hold the labels.',
    ('MG120', 'MG121'),
    clue=r'seg image are out of range: (\d+) found while n_classes is (?!\1\b)',
    tell='`PIL.Image.open(file).mode` is P or RGB.',
)
_GRAY = Cause(
    'Raw values: gray levels, colours, ids of a data set (Cityscapes, COCO, ADE20K), BraTS, instances.',
    ('MG101', 'MG106', 'MG117', 'MG119', 'MG118', 'MG120', 'MG121', 'MG125', 'MG136', 'MG107', 'MG116'),
    clue=r'(?:[Tt]arget|index) (?:[3-9]|[1-9]\d|1\d\d|2[0-4]\d|25[0-36-9]|2[6-9]\d|[3-9]\d\d|[1-9]\d{3,})\b',
    tell='There are more values in the files than classes.',
)
_SLIP = LABEL_CAUSES[3]

SIGNATURES = (
    Signature(
        'MG413',
        'The cross entropy met a target that is out of bounds.',
        r'IndexError: Target -?\d+ is out of bounds'
        r'|Assertion.{0,3}cur_target >= 0 && cur_target < n_classes.{0,3}failed'
        r'|^Target -?\d+ is out of bounds|target.? (?:is )?out of range'
        r'|pixel values of seg image are out of range',
        'A label is neither a class (0 to num_classes - 1) nor ignore_index. The number is the first such label. '
        'A check of the masks before training says the same.',
        (_NOT_IGNORED, _NEGATIVE, _ONE_TOO_MANY, _COLOURS, _GRAY, _SLIP),
        _SCAN,
    ),
    Signature(
        'MG414',
        'Class weights are looked up by label, and a label has none.',
        r'IndexError: (?:index -?\d+ is out of bounds|list index out of range|tuple index)',
        "MMSegmentation's CrossEntropyLoss with class_weight averages by the weights of the labels and looks them up "
        'for ignored pixels as well. The labels may be right.',
        (
            Cause(
                'An ordinary ignored pixel (255): any padding or void label does it.',
                ('MG214', 'MG208'),
                clue=r'index 255\b',
                tell='Without class_weight it trains. GuardedCrossEntropyLoss does the same sum without the lookup.',
            ),
            Cause(
                'A label without a class: the weights end before it.',
                ('MG207', 'MG102', 'MG107', 'MG101', 'MG103', 'MG106'),
                clue=r'index (?:[0-9]|[1-9]\d|1\d\d|2[0-4]\d|25[0-4])\b',
                tell='The index is not 255.',
            ),
        ),
        'mmguard check CONFIG',
        place=r'class_weight\[|class_weights\[',
    ),
    Signature(
        'MG415',
        'The OHEM selection indexes an empty tensor.',
        r'IndexError: index -?\d+ is out of bounds for dimension \d+ with size 0',
        'No pixel was left to choose from: all are ignored in this batch, or none has a class.',
        (
            Cause('All pixels of the batch are ignored.', ('MG128', 'MG103', 'MG124', 'MG211', 'MG208')),
            Cause('The masks are 0/255 and 255 is ignored, or the label map leads nowhere.', ('MG103', 'MG212')),
            Cause('A class list or a box list of this image is empty.', ('MG146', 'MG174')),
            Cause(
                'OHEM takes the score at min_kept, and no pixel of the batch qualifies: fall back to the threshold.',
                ('MG128', 'MG103'),
                clue=r'ohem|min_kept',
            ),
        ),
        _SCAN,
    ),
    Signature(
        'MG416',
        'Scores are picked by label, and a label has none (matcher, gather, OHEM).',
        r'(?:IndexError|RuntimeError): index -?\d+ is out of (?:bounds for (?:dimension|axis) \d+ with size|range for '
        r'dimension) \d+',
        'A label was used as a column of the scores: in the matcher of a DETR-like model, in OHEM, in a focal or Dice '
        'loss. There are as many columns as classes.',
        (
            Cause(
                'One output channel only, and labels 0 and 1.',
                ('MG215', 'MG102'),
                clue=r'with size 1\b',
                tell='The size is 1.',
            ),
            _CATEGORY_IDS,
            _NOT_IGNORED,
            _NEGATIVE,
            _ONE_TOO_MANY,
            _GRAY,
            _SLIP,
        ),
        _SCAN,
        place=r'matcher|cost|gather|ohem|pixel_sampler|loss|criterion|one_hot|scatter|assign',
    ),
    Signature(
        'MG417',
        'A numpy table is indexed by a label that it does not have.',
        r'IndexError: index -?\d+ is out of bounds for axis \d+ with size \d+',
        'A table (palette, label map, per-class sums) has fewer rows than the values it is asked for.',
        (
            Cause(
                'The mask is read as another mode than it has: LA or RGB for L or P, so 255 or colours come out.',
                ('MG120', 'MG121', 'MG151'),
                clue=r'index 255\b|PIL|Image\.open|imread',
                tell='`PIL.Image.open(file).mode` is neither L nor P.',
            ),
            Cause(
                'Raw ids: the table was made for others (COCO-Stuff up to 182, Cityscapes up to 33).',
                ('MG101', 'MG117', 'MG119', 'MG107', 'MG106'),
            ),
            _ONE_TOO_MANY,
            Cause('255 is no class: leave it out before the lookup.', ('MG104', 'MG208'), clue=r'index 255\b'),
            Cause(
                'A script that evaluates or analyses has a class list of its own: its config, or the test data set of '
                'it, names fewer classes than annotations and results have.',
                ('MG204', 'MG203', 'MG229'),
                clue=r'confusion|matrix\b|analy[sz]|eval|metric|browse',
                tell='Training ends well, and only this script fails: give it the config of the training.',
            ),
        ),
        _SCAN,
    ),
    Signature(
        'MG418',
        'An index is outside its tensor.',
        r'IndexError: index -?\d+ is out of bounds'
        r'|index -?\d+ is out of (?:bounds for dimension \d+ with size|range for dimension) \d+',
        'Where labels are the index, one of them is no class; the traceback says which tensor it is.',
        (_NOT_IGNORED, _NEGATIVE, _CATEGORY_IDS, _ONE_TOO_MANY, _GRAY, _SLIP),
        _SCAN,
    ),
    Signature(
        'MG420',
        'list index out of range.',
        r'IndexError: list index out of range|IndexError: tuple index out of range',
        'A list of names or colours is shorter than a label that is looked up in it, or a file has fewer entries than '
        'expected.',
        (
            Cause(
                'A label has no name: the background stands in the class list, the class list is that of another data '
                'set, or num_classes is larger than the list.',
                ('MG201', 'MG202', 'MG204', 'MG102', 'MG108'),
                clue=r'class|CLASSES|names|palette|visual|thing_classes|coco|metainfo|categor',
                tell='Compare num_classes with the number of names.',
            ),
            Cause('category ids count from 1 and index names that count from 0.', ('MG138', 'MG115')),
            Cause('The palette has fewer colours than classes.', ('MG205',), clue=r'palette|color'),
            Cause('An annotation file has a line or record without the entries expected.', ('MG153', 'MG176', 'MG132')),
        ),
        'mmguard check CONFIG',
    ),
    Signature(
        'MG422',
        'A metric refuses values of the target.',
        r'Detected (?:the following|more unique) values in `(?:target|preds)`'
        r'|Expected argument `(?:target|preds)` to (?:be|have)'
        r'|The highest label in `(?:target|preds)` should be smaller than',
        'torchmetrics counts classes 0 to num_classes - 1 and its own ignore_index, nothing else.',
        (
            Cause(
                'The metric has another ignore_index than the data (255), or none.',
                ('MG208', 'MG104', 'MG103'),
                clue=r'\b255\b',
                tell='255 is among the values: give the metric ignore_index=255.',
            ),
            Cause('num_classes of the metric is too small.', ('MG102', 'MG201')),
            Cause('The target is a float or one-hot tensor.', ('MG123',), clue=r'float|dtype|int or bool'),
        ),
        _SCAN,
    ),
    Signature(
        'MG423',
        'A confusion matrix met labels that it has no row for.',
        r"bincount only supports 1-d non-negative integral inputs|'list' argument must have no negative elements"
        r'|cannot reshape array of size \d+ into shape \(\d+,\d+\)'
        r'|shape \'\[(\d+), \1\]\' is invalid for input of size',
        'Predictions and labels are counted as num_classes * label + prediction; a label outside '
        '0..num_classes-1 lands '
        'outside the matrix.',
        (
            Cause('Ignored pixels (255, -1) are counted.', ('MG208', 'MG105', 'MG104'), clue=r'negative'),
            Cause('Labels or predictions reach beyond num_classes.', ('MG102', 'MG107', 'MG201', 'MG101', 'MG106')),
            Cause(
                'The ground truth is uint8: num_classes * label overflows above 255.',
                clue=r'uint8',
                tell='num_classes is 16 or more.',
            ),
        ),
        _SCAN,
    ),
)
