"""Metrics, plots and results."""

from __future__ import annotations

from mmguard.findings.signatures.signature import Cause, Signature

_SCAN = 'mmguard scan CONFIG'

SIGNATURES = (
    Signature(
        'MG429',
        'Results are about images that the annotation file does not have (pycocotools).',
        r'Results do not correspond to current coco set|results in not an array of objects',
        'The metric reads another annotation file than the data set, or the ids of images differ in type.',
        (
            Cause('ann_file of the evaluator is another file.', ('MG229',), tell='Compare both in the config.'),
            Cause('Image ids are text in one and numbers in the other.', ('MG147', 'MG148', 'MG176')),
        ),
        'mmguard check CONFIG',
    ),
    Signature(
        'MG430',
        'Numbers of classes differ between labels, names and scores (scikit-learn).',
        r'Number of classes, \d+, does not match size of target_names'
        r'|y_true and y_pred (?:contain different|have different)'
        r'|Classification metrics can.t handle a mix|At least one label specified must be in y_true'
        r'|Number of classes in y_true|Found input variables with inconsistent numbers',
        'The metric saw other classes than it was given names for.',
        (
            Cause('A class does not occur in this split: give `labels=range(num_classes)`.', ('MG135', 'MG194')),
            Cause('Ignored pixels (255) are counted as a class.', ('MG208', 'MG104')),
            Cause('Labels outside the classes.', ('MG102', 'MG107')),
        ),
        _SCAN,
    ),
    Signature(
        'MG494',
        'A plot has another number of labels than places (matplotlib).',
        r'The number of FixedLocator locations|Dimensions of labels and data must be compatible'
        r"|'(?:bins|color)' .{0,40}must|RGBA values should be within 0-1 range|Invalid RGBA argument"
        r'|x and y must have same first dimension|Number of samples, \d+, does not match',
        'Class names, colours and numbers do not have one length.',
        (
            Cause('The class list is that of another data set.', ('MG201', 'MG204', 'MG205')),
            Cause('A palette of 0..255 where 0..1 is wanted.', clue=r'RGBA'),
        ),
        'mmguard check CONFIG',
    ),
    Signature(
        'MG495',
        'A file of results or labels cannot be shown: no display.',
        r'cannot connect to X server|could not connect to display|no display name and no \$DISPLAY|TclError'
        r'|The function is not implemented. Rebuild the library with Windows, GTK|xcb',
        'Drawing needs a screen, and there is none.',
        (
            Cause('MPLBACKEND=Agg, or show=False.'),
            Cause('opencv-python-headless cannot show windows.', clue=r'Rebuild the library'),
        ),
        'MPLBACKEND=Agg and the same command',
    ),
)
