"""Scan of an mmdet config: finds files, classes and filters of its data sets without building them."""

from __future__ import annotations

import copy
import io
import os
from collections import Counter
from contextlib import redirect_stdout
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from mmguard.config.classes import SCOPES, find_class, get_class_metainfo
from mmguard.config.parts import from_config
from mmguard.config.read import ReadConfig
from mmguard.config.tree import walk
from mmguard.facts.labels import AnnotationFacts, LabelFacts, LoaderFacts
from mmguard.files.regular import temporary_folder, write_whole
from mmguard.formats.coco.read import CocoSample, scan_coco
from mmguard.formats.faults import Faults
from mmguard.formats.files import FILES, check_local_dataset, select_spread
from mmguard.formats.options import SPLITS
from mmguard.formats.voc import find_listed_images, read_list, scan_voc_files
from mmguard.language import Message
from mmguard.scanning.config_maps import TAKE_SAMPLES_ADVICE, build_loading_steps, compare, unwrap
from mmguard.text import describe_error


@dataclass
class DetDataset:
    """One data set of an mmdet config, without wrappers such as RepeatDataset."""

    path: str  #: Path in the config, ``'train_dataloader.dataset.datasets[0]'``.
    type: str  #: Name of the data set's class.
    #: ``'coco'``, ``'lvis'``, ``'lvis_url'`` (images named by ``coco_url``), ``'panoptic'``, ``'voc'``,
    #: or ``''`` if the format of its files cannot be scanned.
    family: str
    root: str  #: ``data_root``.
    ann_file: str  #: Annotation file, joined with the root.
    images: str  #: Folder of the images (VOC: ``sub_data_root``), joined with the root.
    class_names: Optional[List[str]]  #: ``metainfo.classes``, or else the class names of the data set's class.
    filter_cfg: Dict[str, Any] = field(default_factory=dict)  #: ``filter_cfg`` of the config.
    test_mode: bool = False  #: True if the data set does not filter samples.
    settings: Dict[str, Any] = field(default_factory=dict)  #: Whole config of the data set.
    masks: bool = False  #: True if masks are used for training or evaluation.
    cls: Any = None  #: Class of the data set; ``None`` if it is not found.


def scan_detection_config(
    cfg: Any, split: str = 'train', num_classes: Optional[int] = None, masks: bool = False
) -> LabelFacts:
    """Scan the annotation files of one split of an mmdet config.

    The classes are those of the model's heads, or of the class list if the config has no model. If ``masks`` is
    true, masks are read even if the config does not use them.

    Returns:
        LabelFacts: Facts of all data sets of the split together.

    Raises:
        ValueError: The split has no data set, or none that can be scanned.
    """
    datasets = find_det_datasets(cfg, split)
    if not datasets:
        raise ValueError(f'the config has no data set for {split!r}: {split}_dataloader is missing or empty')
    known = [dataset for dataset in datasets if dataset.family]
    if not known:
        types = ', '.join(dataset.type for dataset in datasets)
        raise ValueError(
            f'no data set of {split!r} can be scanned: {types}. mmguard scans data sets derived from CocoDataset, '
            f'LVISDataset or XMLDataset (VOC, if parse_data_info is not overridden). {TAKE_SAMPLES_ADVICE}'
        )
    if num_classes is None:
        spaces = from_config(ReadConfig(cfg.to_dict() if hasattr(cfg, 'to_dict') else dict(cfg)))
        # Panoptic files list stuff classes too.
        space = spaces.pixels if known[0].family == 'panoptic' and spaces.pixels else spaces.instances
        num_classes = None if space is None else space.num_classes
    facts = merge_facts([scan_dataset(replace(one, masks=one.masks or masks), num_classes) for one in known])
    for dataset in datasets:
        if not dataset.family and facts.annotations is not None:
            what = f'data sets of type {dataset.type} cannot be scanned'
            facts.annotations.unreadable.setdefault(what, []).append(dataset.path)
    return facts


#: Fields about how data sets are read; when facts are merged, the first value is kept.
_SETTINGS = (
    'num_classes', 'ignore_index', 'kind', 'class_names', 'format', 'labelled_by', 'min_label', 'min_size', 'config',
    'record_advice',
)  # fmt: skip


def merge_facts(parts: Sequence[LabelFacts]) -> LabelFacts:
    """Merge the facts of data sets that a training concatenates: sum their counts, and join their lists."""
    return parts[0] if len(parts) == 1 else _merge(parts)  # type: ignore[no-any-return]


def _merge(values: Sequence[Any], name: str = '') -> Any:
    first = next((value for value in values if value), values[0])
    if name in _SETTINGS:
        return values[0]
    if is_dataclass(first):
        known = [value for value in values if value is not None]
        merged = {one.name: _merge([getattr(value, one.name) for value in known], one.name) for one in fields(first)}
        return type(first)(**merged)  # type: ignore[misc]
    if isinstance(first, dict):
        joined: Dict[Any, Any] = {}
        for key, item in (pair for value in values for pair in value.items()):
            if key not in joined:
                joined[key] = item
            elif not isinstance(item, (str, tuple)):
                joined[key] = joined[key] + item
        return joined
    if isinstance(first, list):
        return list(dict.fromkeys(item for value in values for item in value))
    return sum(values) if isinstance(first, int) and not isinstance(first, bool) else first


def scan_dataset(dataset: DetDataset, num_classes: Optional[int] = None) -> LabelFacts:
    """Scan the files of one data set in the format that its type reads."""
    facts = _scan_files(dataset, num_classes)
    metainfo = dataset.settings.get('metainfo')
    classes = metainfo.get('classes') if isinstance(metainfo, Mapping) else None
    if isinstance(classes, str) and dataset.class_names == [classes]:
        # COCO category names are matched as substrings of the text; every other reader iterates over its letters.
        facts.class_names = list(classes)
    return facts


def _scan_files(dataset: DetDataset, num_classes: Optional[int], ask_loader: bool = True) -> LabelFacts:
    if ask_loader:
        check_local_dataset(dataset.settings)
    min_size = 0 if dataset.test_mode else int(dataset.filter_cfg.get('min_size') or 0)
    if num_classes is None:
        num_classes = len(dataset.class_names or ()) or None
    if dataset.family == 'voc':
        return _scan_xml(dataset, num_classes, min_size, ask_loader)
    return scan_coco(
        dataset.ann_file,
        num_classes,
        class_names=dataset.class_names,
        images=dataset.images if ask_loader and _has_usual_images(dataset.cls) else None,
        min_size=min_size,
        family=dataset.family,
        ask_loader=partial(_ask, dataset) if ask_loader else None,
        masks=dataset.masks and ask_loader,
        maps=_find_maps(dataset) if ask_loader else None,
        segments=_find_segments(dataset) if ask_loader else '',
    )


def _has_usual_images(cls: Any) -> bool:
    """Return True if image paths are built by the ``parse_data_info`` of a framework, not of the user's class."""
    return cls is None or cls.parse_data_info.__module__.partition('.')[0] in SCOPES


def _find_segments(dataset: DetDataset) -> str:
    """Return the folder of the PNGs of a panoptic data set; empty if the config names none."""
    prefix = dataset.settings.get('data_prefix')
    folder = prefix.get('seg') if isinstance(prefix, Mapping) else None
    return _join(dataset.root, folder) if dataset.family == 'panoptic' and isinstance(folder, str) else ''


def _find_maps(dataset: DetDataset) -> Optional[Tuple[str, str]]:
    """Return folder and suffix of the label maps that the data set's pipeline loads; ``None`` if it loads none."""
    prefix, steps = dataset.settings.get('data_prefix'), dataset.settings.get('pipeline')
    folder = prefix.get('seg') if isinstance(prefix, Mapping) else None
    loads = any(isinstance(step, Mapping) and step.get('with_seg') is True for step in steps or ())
    if not loads or dataset.family != 'coco' or not isinstance(folder, str):
        return None
    return _join(dataset.root, folder), str(dataset.settings.get('seg_map_suffix') or '.png')


def _ask(dataset: DetDataset, samples: List[CocoSample]) -> LoaderFacts:
    if dataset.family not in ('coco', 'voc'):
        return LoaderFacts(unknown=Message('mmguard does not run {type} on a part of its files', type=dataset.type))
    return ask_dataset(dataset, samples, lambda part: _scan_files(part, None, ask_loader=False))


def find_det_datasets(cfg: Any, split: str = 'train') -> List[DetDataset]:
    """Return the data sets of a split in order, without their wrappers (Repeat, Concat, ClassBalanced, ...)."""
    if split not in SPLITS:
        raise ValueError(f'split must be one of {", ".join(map(repr, SPLITS))}, got {split!r}')
    loader = cfg.get(f'{split}_dataloader')
    if not isinstance(loader, Mapping) or not isinstance(loader.get('dataset'), Mapping):
        return []
    leaves = unwrap(f'{split}_dataloader.dataset', loader['dataset'])
    masks = _needs_masks(cfg)
    scope = ReadConfig(cfg.to_dict() if hasattr(cfg, 'to_dict') else dict(cfg)).scope or 'mmdet'
    return [_build_dataset(path, dict(settings), masks, scope) for path, settings, _ in leaves]


def _needs_masks(cfg: Any) -> bool:
    """Return True if a loader of the config reads masks, or a head predicts masks."""
    return any(
        part.get('with_mask') is True or isinstance(part.get('mask_head'), (dict, list))
        for key in ('model', *(f'{split}_dataloader' for split in SPLITS))
        for _, part in walk(cfg.get(key))
    )


def _build_dataset(path: str, settings: Dict[str, Any], masks: bool, scope: str) -> DetDataset:
    kind = settings.get('type', '')
    name = (kind or 'data set without a type') if isinstance(kind, str) else getattr(kind, '__name__', str(kind))
    cls = find_class(kind, 'DATASETS', settings.get('_scope_', scope))
    family = _find_family(cls)
    root = str(settings.get('data_root') or '')
    prefix = settings.get('data_prefix')
    prefix = prefix if isinstance(prefix, Mapping) else {}
    folder = prefix.get('sub_data_root' if family == 'voc' else 'img', prefix.get('img_path', ''))
    return DetDataset(
        path=path,
        type=name,
        family=family,
        root=root,
        ann_file=_join(root, settings.get('ann_file') or ''),
        images=_join(root, folder if isinstance(folder, str) else ''),
        class_names=_find_classes(settings, cls),
        filter_cfg=dict(settings.get('filter_cfg') or {}),
        test_mode=bool(settings.get('test_mode')),
        settings=settings,
        masks=masks,
        cls=cls,
    )


def _find_family(cls: Any) -> str:
    """Return the format that a data set class reads; empty if the format, or how the class finds files, is unknown."""
    if cls is None:
        return ''
    # Compare base names: a data set in the user's own file may derive from mmdet's.
    bases = [base.__name__ for base in getattr(cls, '__mro__', ())]
    if 'XMLDataset' in bases and cls.parse_data_info.__qualname__.partition('.')[0] != 'XMLDataset':
        return ''  # WIDERFaceDataset
    for base, family in (
        ('LVISV1Dataset', 'lvis_url'),
        ('LVISV05Dataset', 'lvis'),
        ('CocoPanopticDataset', 'panoptic'),
        ('CocoDataset', 'coco'),
        ('XMLDataset', 'voc'),
    ):
        if base in bases:
            return family
    return ''


def _find_classes(settings: Mapping[str, Any], cls: Any) -> Optional[List[str]]:
    metainfo = settings.get('metainfo')
    names = metainfo.get('classes') if isinstance(metainfo, Mapping) else None
    if names is None:
        known = get_class_metainfo(cls, settings.get('dataset_version'))
        names = known.get('classes')
    if isinstance(names, str):  # a file name, or classes=('cat') with the comma missing
        if not os.path.isfile(names):
            return [names]
        return read_list(names, names, Faults())
    return None if names is None else [str(name) for name in names]


def _join(root: str, path: Any) -> str:
    path = path if isinstance(path, str) else ''
    return os.path.join(root, path) if root else path


def _scan_xml(dataset: DetDataset, num_classes: Optional[int], min_size: int, ask_loader: bool) -> LabelFacts:
    faults = Faults()
    lines = read_list(dataset.ann_file, dataset.ann_file, faults)
    of_images = dataset.settings.get('img_subdir') or 'JPEGImages'
    of_xml = dataset.settings.get('ann_subdir') or 'Annotations'
    # Names are relative to the data root, same as in mmguard's log.
    root = dataset.root or dataset.images
    inside = os.path.relpath(dataset.images, root)
    folder = '' if inside == '.' else inside
    listed = find_listed_images(lines, folder, of_images, of_xml, dataset.ann_file, faults)
    smallest = 0 if dataset.test_mode else int(dataset.filter_cfg.get('bbox_min_size') or 0)
    facts = scan_voc_files(
        root,
        listed,
        num_classes,
        dataset.class_names or [],
        min_size,
        smallest,
        images=ask_loader,
        faults=faults,
        boundary=dataset.images,  # the config may put images outside of the data root, the data set may not
    )
    assert isinstance(facts.annotations, AnnotationFacts)
    facts.annotations.sources = [os.path.normpath(dataset.images)]
    changed = any(FILES.get_replacement(os.path.join(root, image.xml)) for image in listed)  # mmdet reads the disk
    if ask_loader and lines and not (faults or changed or facts.values or facts.reasons):
        facts.loader = _ask(dataset, [CocoSample(line, f'{line}\n') for line in select_spread(lines)])
    return facts


def ask_dataset(
    dataset: DetDataset, samples: Sequence[CocoSample], scan: Callable[[DetDataset], LabelFacts]
) -> LoaderFacts:
    """Load each sample with the data set of the config and compare the labels with a scan of the same file.

    The pipeline runs up to the loading of the annotations; masks are not loaded.
    """
    facts = LoaderFacts()
    try:
        steps = _cut_after_loader(dataset)
    except ImportError as error:
        return LoaderFacts(unknown=describe_error(error, 160))
    except Exception as error:  # a user-defined class may raise anything
        steps, facts.unknown = [], f'the pipeline cannot be built ({describe_error(error, 160)})'
    with temporary_folder() as folder:
        for number, sample in enumerate(samples):
            path = os.path.join(folder, f'{number}{os.path.splitext(dataset.ann_file)[1]}')
            write_whole(Path(path), sample.text.encode())
            counts = scan(replace(dataset, ann_file=path)).histogram
            compare(facts, sample.image, counts, partial(_count_labels, dataset, path, steps))
    return facts


def _cut_after_loader(dataset: DetDataset) -> List[Any]:
    from mmdet.registry import TRANSFORMS

    without = dict(with_mask=False, with_seg=False)
    steps = [
        {**step, **{key: value for key, value in without.items() if key in step}}
        for step in dataset.settings.get('pipeline') or ()
    ]
    return build_loading_steps(steps, TRANSFORMS)


def _count_labels(dataset: DetDataset, path: str, steps: Sequence[Any]) -> Dict[int, int]:
    """Count the instances of an annotation file that are not ignored, as {label: count}."""
    from mmdet.registry import DATASETS
    from mmengine.dataset import Compose

    light = copy.deepcopy(dataset.settings)
    light.update(type=dataset.cls, ann_file=path, pipeline=[], filter_cfg=None, serialize_data=False)
    light.pop('backend_args', None)  # the sample is on this machine
    counts: Counter = Counter()
    with redirect_stdout(io.StringIO()):  # silence pycocotools
        built = DATASETS.build(light)
        built.full_init()
    built.pipeline = Compose(steps)
    for place in range(len(built)):
        results = built[place]
        if steps:
            counts.update(np.asarray(results['gt_bboxes_labels'])[~results['gt_ignore_flags']].tolist())
        else:
            counts.update(one['bbox_label'] for one in results['instances'] if not one['ignore_flag'])
    return counts
