"""One example of facts for each cause: what ``mmguard explain`` and docs/findings.md show it with."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Callable, Dict, Mapping, Optional, Type, TypeVar

from volume_facts import VOLUME_EXAMPLES

from mmguard.facts.labels import AnnotationFacts, BoxFacts, CocoFacts, ConfigFacts, LabelFacts, LoaderFacts, MapFacts
from mmguard.facts.yolo import YoloFacts
from mmguard.findings.plugins import list_own_rules

FILES = 200
Kind = TypeVar('Kind')


def pixels(
    stored: Mapping[int, int],
    num_classes: int,
    ignore_index: int = 255,
    reduce_zero_label: bool = False,
    trained: Optional[Mapping[int, int]] = None,
    offending_files: Optional[int] = None,
    config: Optional[ConfigFacts] = None,
    maps: Optional[Dict[str, Any]] = None,
    **more: Any,
) -> LabelFacts:
    """Facts of a set of label maps.

    Args:
        stored (dict[int, int]): Value in the files -> pixels.
        reduce_zero_label (bool): Whether mmseg's loader subtracts 1 from them.
        trained (dict[int, int], optional): What training sees, where it is not that.
        maps (dict, optional): More of ``MapFacts``.
        more: More of ``LabelFacts``.
    """
    histogram = dict(stored if trained is None else trained)
    if reduce_zero_label:
        histogram = {}
        for value, count in stored.items():
            label = 255 if value in (0, 255) else value - 1
            histogram[label] = histogram.get(label, 0) + count
        config = config or ConfigFacts('mmseg')
        config.reduce_zero_label = {'train_dataloader.dataset.reduce_zero_label': True}
    values = {v: n for v, n in histogram.items() if not (0 <= v < num_classes or v == ignore_index)}
    facts = LabelFacts(
        values=values,
        num_classes=num_classes,
        ignore_index=ignore_index,
        total=sum(histogram.values()),
        files=FILES,
        offending_files=(FILES if values else 0) if offending_files is None else offending_files,
        histogram=histogram,
        maps=MapFacts(raw=dict(stored), **{'forms': {'gray8': FILES}, **(maps or {})}),
        config=config,
    )
    for name, value in more.items():
        setattr(facts, name, value)
    return facts


def instances(
    labels: Mapping[int, int],
    num_classes: int,
    annotations: Optional[Dict[str, Any]] = None,
    config: Optional[ConfigFacts] = None,
    **more: Any,
) -> LabelFacts:
    """Facts of a set of annotations: label -> how many; ``annotations``: more of them, of their boxes and of COCO."""
    values = {v: n for v, n in labels.items() if not 0 <= v < num_classes}
    total = sum(labels.values())
    found = {'images': FILES, 'annotations': total, 'categories': {1: 'cat', 2: 'dog', 3: 'cow'}, **(annotations or {})}

    def build(kind: Type[Kind]) -> Kind:
        return kind(**{one.name: found.pop(one.name) for one in fields(kind) if one.name in found})  # type: ignore

    facts = LabelFacts(
        values=values,
        num_classes=num_classes,
        total=total,
        files=FILES,
        kind='instances',
        offending_files=FILES // 2 if values else 0,
        reasons={'label': sum(values.values())} if values else {},
        histogram=dict(labels),
        annotations=build(AnnotationFacts),
        boxes=build(BoxFacts),
        coco=build(CocoFacts),
        config=config,
    )
    assert not found, found
    for name, value in more.items():
        setattr(facts, name, value)
    return facts


def even(*values: int, count: int = 5000) -> Dict[int, int]:
    """The same count for each value."""
    return dict.fromkeys(values, count)


def detection(heads: int = 3, names: str = 'cat dog cow', **more: Any) -> ConfigFacts:
    """A detection config with one head and one class list."""
    lists = {'train_dataloader.dataset.metainfo.classes': names.split()}
    return ConfigFacts('mmdet', {'model.bbox_head.num_classes': heads}, dataset_classes=lists, **more)


def segmentation(classes: int, **more: Any) -> ConfigFacts:
    """A segmentation config with one head."""
    return ConfigFacts('mmseg', {'model.decode_head.num_classes': classes}, **more)


def texts(kind: str, place: str, number: int = 12, labels: Optional[Dict[int, int]] = None, **more: Any) -> LabelFacts:
    """Facts of YOLO label files with one kind of fault; ``more``: of ``YoloFacts``."""
    rows = {'rows': 15_000, 'images': FILES, 'faults': {kind: [place]}, 'counts': {kind: number}, **more}
    return instances(_THREE if labels is None else labels, 3, {'format': 'yolo'}, yolo=YoloFacts(**rows))


def masks(fault: str) -> LabelFacts:
    """Facts of annotations of which some have this fault of a mask."""
    return instances(_THREE, 3, {'mask_faults': {fault: 40}, 'mask_examples': {fault: ['7.jpg: annotation 31']}})


_WEIGHTS = 'model.decode_head.loss_decode.class_weight'
_THREE = even(0, 1, 2)

#: Code -> facts on which its cause is the first one found.
EXAMPLES: Dict[str, Callable[[], LabelFacts]] = {
    'MG100': lambda: pixels(even(0, 1, 2, 255), 3),
    'MG101': lambda: pixels(even(*range(34)), 19),
    'MG102': lambda: pixels(even(*range(12)), 11),
    'MG103': lambda: pixels({0: 90_000, 255: 10_000}, 2),
    'MG104': lambda: pixels(even(*range(11), 255), 11, ignore_index=-100),
    'MG105': lambda: pixels(even(-1, 0, 1, 2), 3),
    'MG106': lambda: pixels(even(*range(256)), 2),
    'MG107': lambda: pixels(even(0, 1, 7), 2),
    'MG108': lambda: instances(_THREE, 2, class_names=['cat', 'dog', 'cow']),
    'MG109': lambda: instances(
        _THREE,
        3,
        {'box_examples': {'box_no_area': ['7.jpg: 10, 20, 0, 5']}},
        reasons={'box_no_area': 4},
    ),
    'MG115': lambda: pixels(even(1, 2, 3, 4, 5, 6), 6),
    'MG116': lambda: pixels(even(0, 1, 2, 3, 5), 5),
    'MG117': lambda: pixels(even(*[i for i in range(1, 91) if i not in (12, 26, 29, 30, 45, 66, 68, 69, 71, 83)]), 80),
    'MG119': lambda: pixels(even(*range(151)), 150),
    'MG120': lambda: pixels(even(0, 128), 2, maps={'forms': {'rgb': FILES}, 'colors': {(0, 0, 0): 9, (128, 0, 0): 2}}),
    'MG121': lambda: pixels(
        even(0, 1, 2),
        3,
        trained=even(0, 38, 75),
        maps={'forms': {'palette8': 200}, 'loaded_otherwise': {'colors': 200}},
    ),
    'MG122': lambda: pixels(
        even(0, 1, 261), 6, trained=even(0, 1, 5), maps={'forms': {'gray16': 200}, 'loaded_otherwise': {'wrapped': 50}}
    ),
    'MG123': lambda: pixels(even(0), 3, maps={'forms': {'float': FILES}, 'fractions': {1 / 255: 5000, 2 / 255: 5000}}),
    'MG124': lambda: pixels(even(*range(7)), 7, reduce_zero_label=True),
    'MG125': lambda: pixels(even(0, 128, 254), 3),
    'MG127': lambda: pixels({0: 90_000, 1: 90_000, 77: 9}, 2, offending_files=1),
    'MG128': lambda: pixels(even(0, 1, 255), 2, maps={'all_void': ['a.png', 'b.png']}),
    'MG129': lambda: pixels(_THREE, 3, maps={'missing_labels': ['0007', '0008']}),
    'MG130': lambda: pixels(_THREE, 3, maps={'size_mismatches': [('a.png', (512, 512), (1024, 1024))]}),
    'MG132': lambda: pixels(_THREE, 3, maps={'unreadable': {'truncated': ['a.png']}}),
    'MG133': lambda: pixels(even(0, 1, 2, 254), 4),
    'MG135': lambda: pixels(even(0), 3),
    'MG136': lambda: pixels({0: 90_000, 255: 9_000, **even(*range(2, 40), count=3)}, 2, maps={'lossy': 200}),
    'MG137': lambda: instances(even(2905442, 2905443), 6),
    'MG138': lambda: instances(even(1, 3), 2, {'categories': {1: 'cat', 3: 'dog'}, 'labelled_by': 'category id'}),
    'MG140': lambda: instances(even(0), 3, config=detection(names='Cat dog cow')),
    'MG141': lambda: instances(_THREE, 3, config=detection(names='dog cat cow')),
    'MG158': lambda: instances(
        _THREE,
        3,
        {
            'categories': {1: 'cat', 2: 'dog', 3: 'cow'},
            'other_categories': {'train.json': {1: 'dog', 2: 'cat', 3: 'cow'}},
        },
    ),
    'MG146': lambda: instances(_THREE, 3, {'images_without_target': 40}),
    'MG147': lambda: instances(_THREE, 3, {'duplicate_image_ids': [7, 8]}),
    'MG149': lambda: instances(_THREE, 3, {'unnamed': {9: 40}}),
    'MG150': lambda: instances(_THREE, 3, {'missing_files': ['7.jpg']}),
    'MG152': lambda: instances(_THREE, 3, {'negative_boxes': 12}),
    'MG153': lambda: instances(_THREE, 3, {'without_key': {'annotations.area': 15_000}}),
    'MG154': lambda: instances(even(0, 1), 2, {'left_out_names': {'cow': 50}}),
    'MG156': lambda: instances(
        _THREE, 3, {'categories': {0: 'cat', 1: 'dog', 2: 'Cat'}}, class_names=['cat', 'dog', 'Cat']
    ),
    'MG160': lambda: instances(even(1, 2), 3, {'categories': {0: 'background', 1: 'cat', 2: 'dog'}}),
    'MG161': lambda: instances(_THREE, 80, {'labelled_by': 'file order'}),
    'MG162': lambda: instances(even(0, 1), 2, {'categories': {0: 'cat', 1: 'dog'}, 'labelled_by': 'COCO ids'}),
    'MG163': lambda: texts(
        'rows',
        "labels/7.txt: line 3: the row has fewer than 5 columns: '0 0.5 0.5 0.1'",
        reasons={'the row has fewer than 5 columns': 12},
        left_out=9,
    ),
    'MG159': lambda: texts('nothing', '', 0, unswapped=4),
    'MG164': lambda: texts('beyond', 'labels/7.txt: line 3: class 0, 0.9, 0.2, 1.4, 0.3', left_out=9),
    'MG165': lambda: texts('other task', 'labels/7.txt: line 3: class 0, 0.1, 0.2, 0.4, 0.3'),
    'MG168': lambda: texts('declared', 'data.yaml: nc is 3, but names has 2 entries: ultralytics stops', 1),
    'MG169': lambda: texts('no label', 'images/7.jpg'),
    'MG172': lambda: instances(
        _THREE,
        3,
        {
            'inside_as': {'corners': 15_000},
            'over_edge': 9000,
            'box_examples': {'over_edge': ['7.jpg: 400, 300, 500, 420']},
        },
    ),
    'MG174': lambda: instances({}, 3, {'annotations': 15_000, 'crowds': 15_000, 'images_without_target': FILES}),
    'MG134': lambda: instances(
        _THREE,
        4,
        {
            'release': '1.5.0',
            'spare': 1,
            'classes_counted': True,
            'uncounted': 3,
            'categories': {0: 'a', 1: 'b', 2: 'c'},
        },
    ),
    'MG157': lambda: instances(
        _THREE, 3, {'unreadable': {'with_seg=True, but the label map of an image is missing': ['stuff/7.png']}}
    ),
    'MG176': lambda: instances(
        _THREE, 3, {'unreadable': {'bbox is not four numbers': ["train.json: annotations[7]: ['1', '2', '3', '4']"]}}
    ),
    'MG393': lambda: instances(
        _THREE, 3, {'unreadable': {'the class folders differ from the class list': ['val: lacks cow']}}
    ),
    'MG394': lambda: instances(
        _THREE,
        3,
        {'unreadable': {'RF-DETR has no label for a category that no annotation of train uses (KeyError)': ['cow']}},
    ),
    'MG395': lambda: masks('a segment has no pixel in its PNG'),
    'MG396': lambda: masks('the mask is missing'),
    'MG397': lambda: masks('the size of an RLE is not that of the image'),
    'MG398': lambda: masks('an RLE is empty'),
    'MG580': lambda: pixels(even(0, 1), 2, maps={'forms': {'rgb': FILES}, 'gray_in_color': FILES}),
    'MG581': lambda: instances(
        {0: 40, 1: 40},
        3,
        {'categories': {0: 'cat', 1: 'dog'}, 'labelled_by': 'category id', 'min_label': 1},
        values={0: 40},
    ),
    'MG178': lambda: pixels(
        _THREE, 3, loader=LoaderFacts(4, {'a.png': ({0: 9, 1: 7, 255: 4}, {0: 9, 1: 7, 2: 4})}), config=segmentation(3)
    ),
    'MG179': lambda: masks('the counts of an RLE do not add up to its size'),
}
_CODES = {rule.code for rule in list_own_rules()}
EXAMPLES.update({code: example for code, example in VOLUME_EXAMPLES.items() if code in _CODES})
