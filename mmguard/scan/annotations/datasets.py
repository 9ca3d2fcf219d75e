"""The data sets of an mmdet config, without building them: which files they read, and how."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from mmguard.diagnosis.facts import AnnotationFacts, LabelFacts
from mmguard.scan.annotations.coco import scan_coco
from mmguard.scan.annotations.faults import Faults
from mmguard.scan.annotations.merge import merged
from mmguard.scan.annotations.openimages import scan_openimages
from mmguard.scan.annotations.voc import images_of_list, read_list, scan_voc_files

SPLITS = ('train', 'val', 'test')
#: Parts of a model whose ``num_classes`` is no number of object classes (an RPN tells objects from background).
_NO_HEADS = ('backbone', 'neck', 'rpn_head', 'data_preprocessor', 'train_cfg', 'test_cfg', 'semantic_head')


@dataclass
class DetDataset:
    """One data set of a config, inside of whatever wrappers.

    Args:
        path (str): Where it stands in the config, ``'train_dataloader.dataset.datasets[0]'``.
        type (str): Its type.
        family (str): ``'coco'``, ``'lvis'``, ``'lvis_url'`` (images named by ``coco_url``), ``'panoptic'``, ``'voc'``,
            ``'openimages'``, or ``''`` where its files are of a format that cannot be scanned.
        root (str): ``data_root``.
        ann_file (str): The annotations, joined with the root.
        images (str): Folder of the images (VOC: ``sub_data_root``), joined with the root.
        class_names (list[str], optional): ``metainfo.classes``, or those of the type.
        filter_cfg (dict): As in the config.
        test_mode (bool): Whether it filters nothing.
        settings (dict): All of its config.
    """

    path: str
    type: str
    family: str
    root: str
    ann_file: str
    images: str
    class_names: Optional[List[str]]
    filter_cfg: Dict[str, Any] = field(default_factory=dict)
    test_mode: bool = False
    settings: Dict[str, Any] = field(default_factory=dict)


def scan_detection_config(cfg: Any, split: str = 'train', num_classes: Optional[int] = None) -> LabelFacts:
    """Scans the annotation files of one split of a config.

    Args:
        cfg (Config or dict): A config of mmdet, loaded.
        split (str): ``'train'``, ``'val'`` or ``'test'``.
        num_classes (int, optional): Classes of the head. Default: the fewest of the model's heads, or as many as the
            class list has where the config has no model.

    Returns:
        LabelFacts: Of all data sets of the split together.

    Raises:
        ValueError: The split has no data set, or none that can be scanned.
    """
    datasets = datasets_of_config(cfg, split)
    if not datasets:
        raise ValueError(f'the config has no data set for {split!r}: {split}_dataloader is missing or empty')
    known = [dataset for dataset in datasets if dataset.family]
    if not known:
        types = ', '.join(dataset.type for dataset in datasets)
        raise ValueError(
            f'no data set of {split!r} can be scanned: {types}. Known are those that derive from CocoDataset, '
            f'LVISDataset, XMLDataset (VOC) and OpenImagesDataset'
        )
    if num_classes is None:
        num_classes = head_classes(cfg.get('model'), known[0].family)
    facts = merged([scan_dataset(dataset, num_classes) for dataset in known])
    for dataset in datasets:
        if not dataset.family and facts.annotations is not None:
            what = f'data sets of type {dataset.type} cannot be scanned'
            facts.annotations.unreadable.setdefault(what, []).append(dataset.path)
    return facts


def scan_dataset(dataset: DetDataset, num_classes: Optional[int] = None) -> LabelFacts:
    """Scans the files of one data set, as its type reads them."""
    facts = _scan_files(dataset, num_classes)
    metainfo = dataset.settings.get('metainfo')
    classes = metainfo.get('classes') if isinstance(metainfo, Mapping) else None
    if isinstance(classes, str) and dataset.class_names == [classes]:
        # COCO's names are looked up in it, and found, as parts of the text. All else counts its letters.
        facts.class_names = list(classes)
    return facts


def _scan_files(dataset: DetDataset, num_classes: Optional[int]) -> LabelFacts:
    min_size = 0 if dataset.test_mode else int(dataset.filter_cfg.get('min_size') or 0)
    if num_classes is None:
        num_classes = len(dataset.class_names or ()) or None
    if dataset.family == 'voc':
        return _scan_xml(dataset, num_classes, min_size)
    if dataset.family == 'openimages':
        keys = ('label_file', 'meta_file')
        files = {key: _join(dataset.root, dataset.settings.get(key) or '') for key in keys}
        return scan_openimages(dataset.ann_file, num_classes=num_classes, images=dataset.images, **files)
    return scan_coco(
        dataset.ann_file,
        num_classes,
        dataset.class_names,
        dataset.images,
        min_size,
        lvis=dataset.family.startswith('lvis'),
        by_url=dataset.family == 'lvis_url',
    )


def datasets_of_config(cfg: Any, split: str = 'train') -> List[DetDataset]:
    """The data sets of a split, in order, out of their wrappers (Repeat, Concat, ClassBalanced, MultiImageMix, ...).

    Args:
        cfg (Config or dict): A config, loaded.
        split (str): ``'train'``, ``'val'`` or ``'test'``.
    """
    if split not in SPLITS:
        raise ValueError(f'split must be one of {", ".join(map(repr, SPLITS))}, got {split!r}')
    loader = cfg.get(f'{split}_dataloader')
    if not isinstance(loader, Mapping) or not isinstance(loader.get('dataset'), Mapping):
        return []
    leaves = _leaves(f'{split}_dataloader.dataset', loader['dataset'])
    return [_dataset(path, dict(settings)) for path, settings in leaves]


def head_classes(model: Any, family: str = '') -> Optional[int]:
    """The fewest classes that a head of a model knows; ``None`` where no head says so."""
    counts: List[int] = []
    _collect(model, counts, family)
    return min(counts) if counts else None


def _collect(part: Any, counts: List[int], family: str) -> None:
    if isinstance(part, (list, tuple)):
        for item in part:
            _collect(item, counts, family)
    if not isinstance(part, Mapping):
        return
    things = part.get('num_things_classes')
    if isinstance(things, int):
        stuff = part.get('num_stuff_classes')
        counts.append(things + (stuff if family == 'panoptic' and isinstance(stuff, int) else 0))
    elif isinstance(part.get('num_classes'), int) and not isinstance(part['num_classes'], bool):
        counts.append(part['num_classes'])
    for key, value in part.items():
        if key not in _NO_HEADS and not str(key).startswith('loss'):
            _collect(value, counts, family)


def _leaves(path: str, settings: Mapping) -> Iterator[Tuple[str, Mapping]]:
    inner, several = settings.get('dataset'), settings.get('datasets')
    if isinstance(inner, Mapping):
        yield from _leaves(f'{path}.dataset', inner)
    elif isinstance(several, (list, tuple)):
        for number, one in enumerate(several):
            if isinstance(one, Mapping):
                yield from _leaves(f'{path}.datasets[{number}]', one)
    else:
        yield path, settings


def _dataset(path: str, settings: Dict[str, Any]) -> DetDataset:
    kind = settings.get('type', '')
    name = kind if isinstance(kind, str) else getattr(kind, '__name__', str(kind))
    cls = _class_of(kind)
    family = _family_of(cls)
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
        class_names=_classes(settings.get('metainfo'), cls),
        filter_cfg=dict(settings.get('filter_cfg') or {}),
        test_mode=bool(settings.get('test_mode')),
        settings=settings,
    )


def _class_of(kind: Any) -> Any:
    if not isinstance(kind, str):
        return kind
    import mmdet.datasets  # noqa: F401  registers them
    from mmdet.registry import DATASETS

    return DATASETS.get(kind)


def _family_of(cls: Any) -> str:
    if cls is None:
        return ''
    # By name of the base: this must also work for a data set that derives from mmdet's in the user's own file.
    bases = [base.__name__ for base in getattr(cls, '__mro__', ())]
    for base, family in (
        ('LVISV1Dataset', 'lvis_url'),
        ('LVISV05Dataset', 'lvis'),
        ('CocoPanopticDataset', 'panoptic'),
        ('CocoDataset', 'coco'),
        ('XMLDataset', 'voc'),
        ('OpenImagesChallengeDataset', ''),
        ('OpenImagesDataset', 'openimages'),
    ):
        if base in bases:
            return family
    return ''


def _classes(metainfo: Any, cls: Any) -> Optional[List[str]]:
    names = metainfo.get('classes') if isinstance(metainfo, Mapping) else None
    if names is None:
        names = (getattr(cls, 'METAINFO', None) or {}).get('classes')
    if isinstance(names, str):  # the name of a file; else classes=('cat') without its comma
        if not os.path.isfile(names):
            return [names]
        return read_list(names, names, Faults())
    return None if names is None else [str(name) for name in names]


def _join(root: str, path: Any) -> str:
    path = path if isinstance(path, str) else ''
    return os.path.join(root, path) if root else path


def _scan_xml(dataset: DetDataset, num_classes: Optional[int], min_size: int) -> LabelFacts:
    faults = Faults()
    lines = read_list(dataset.ann_file, dataset.ann_file, faults)
    folders = [
        dataset.settings.get(key) or usual
        for key, usual in (('img_subdir', 'JPEGImages'), ('ann_subdir', 'Annotations'))
    ]
    # Names are told relative to the data root, as mmguard's log tells them.
    inside = os.path.relpath(dataset.images, dataset.root) if dataset.root else ''
    root = dataset.root or dataset.images
    listed = images_of_list(lines, '' if inside == '.' else inside, *folders)
    smallest = 0 if dataset.test_mode else int(dataset.filter_cfg.get('bbox_min_size') or 0)
    facts = scan_voc_files(
        root, listed, num_classes, dataset.class_names or [], min_size, bbox_min_size=smallest, faults=faults
    )
    assert isinstance(facts.annotations, AnnotationFacts)
    return facts
