"""What the frameworks' own loaders give to a training: no line of mmguard counts here, but the guard in a pipeline."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple
from xml.etree import ElementTree

import numpy as np
from PIL import Image
from targets import scan_sets

from mmguard.facts.labels import LabelFacts
from mmguard.formats.options import ScanOptions, build_settings
from mmguard.scanning.plans import plan_target

VOID = 255
#: Left out of a pipeline: they show other parts of a label map at each look.
BY_LOT = ('RandomResize', 'RandomChoiceResize', 'RandomCrop', 'RandomFlip')


@dataclass
class Trained:
    """What is trained on.

    Args:
        kind (str): ``'pixels'`` or ``'instances'``.
        num_classes (int): Labels ``[0, num_classes)`` are classes.
        ignore_index (int, optional): Of label maps.
        maps (list[tuple]): Of each label file, by name: what is stored in it, and the labels made of it.
        counts (dict[str, int]): Class, by its name where it has one -> elements that teach it.
        labels (list[int]): All labels, of instances.
        boxes (dict[str, list]): Picture -> left, top, right, bottom of its objects.
        names (dict): Object, by its id or its place -> what the file calls it.
        model (dict): Of the config; empty where there is none.
        faults (list[str]): Forbidden outcomes that show without a meaning: names that became another's, nothing left.
    """

    kind: str
    num_classes: int
    ignore_index: Optional[int] = None
    maps: Dict[str, Tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    counts: Dict[str, int] = field(default_factory=dict)
    labels: List[int] = field(default_factory=list)
    boxes: Dict[str, List[Sequence[float]]] = field(default_factory=dict)
    names: Dict[Any, str] = field(default_factory=dict)
    model: Mapping[str, Any] = field(default_factory=dict)
    faults: List[str] = field(default_factory=list)


def trained_on(path: Path, options: Mapping[str, Any]) -> Trained:
    """Of a config its first split that is looked at."""
    if path.suffix != '.py':
        return _without_config(path, options)
    from mmengine.config import Config
    from mmengine.registry import DefaultScope, init_default_scope

    config = Config.fromfile(str(path))
    scopes = dict(DefaultScope._instance_dict)
    try:
        init_default_scope(config.default_scope)
        data = config[f'{options["splits"][0]}_dataloader'].dataset
        return _of_maps(data, config.model) if config.default_scope == 'mmseg' else _of_boxes(data, config.model)
    finally:
        DefaultScope._instance_dict.clear()
        DefaultScope._instance_dict.update(scopes)


# ---- label maps


def _of_maps(data: Any, model: Any) -> Trained:
    from mmseg.registry import DATASETS
    from mmseg.utils import register_all_modules

    register_all_modules(init_default_scope=False)
    for leaf in leaves(data):
        leaf.pipeline = [step for step in leaf.get('pipeline') or [] if step['type'] not in BY_LOT]
    dataset = DATASETS.build(data)
    heads = heads_of(model)
    number = min(
        max(head['num_classes'], 2) if head.get('out_channels') == 1 else head['num_classes'] for head in heads
    )
    found = Trained('pixels', number, heads[0].get('ignore_index', VOID), model=model)
    names = dataset.metainfo.get('classes') or ()
    for place in range(len(dataset)):
        path = dataset.get_data_info(place)['seg_map_path']
        try:
            sample = dataset[place]
        except Exception:  # photographs that are not there, files cut off: not what is asked here
            continue
        packed = sample.get('data_samples')
        label = sample['gt_seg_map'] if packed is None else packed.gt_sem_seg.data[0].numpy()
        _add(found, path, label, names)
    return _checked(found)


def heads_of(model: Any) -> List[Any]:
    """The decode heads of an mmseg model, then its auxiliary ones."""
    heads: List[Any] = []
    for name in ('decode_head', 'auxiliary_head'):
        head = model.get(name)
        heads += head if isinstance(head, (list, tuple)) else [head] if head else []
    return heads


def _of_folder(path: Path, options: Mapping[str, Any]) -> Trained:
    """As mmseg's loader gives the files of a folder, with the label map and the shift that the user said."""
    from mmseg.datasets.transforms import LoadAnnotations

    said = ScanOptions(**options)
    settings = build_settings(said)
    found = Trained('pixels', settings.num_classes, settings.ignore_index)
    source = plan_target(str(path), said).sources[0]
    for item in source.items():  # type: ignore[union-attr]
        results = dict(
            seg_map_path=str(item.path),
            reduce_zero_label=said.reduce_zero_label,
            label_map=dict(said.label_map) or None,
            seg_fields=[],
        )
        try:
            label = LoadAnnotations()(results)['gt_seg_map']
        except Exception:  # files cut off
            continue
        _add(found, str(item.path), label, ())
    return _checked(found)


def _add(found: Trained, path: str, label: np.ndarray, names: Any) -> None:
    found.maps[Path(path).stem] = (stored(path), np.asarray(label))
    values, counts = np.unique(label, return_counts=True)
    for value, count in zip(values.tolist(), counts.tolist()):
        if 0 <= value < found.num_classes and value != found.ignore_index:
            name = str(names[value]) if not isinstance(names, str) and value < len(names) else str(value)
            found.counts[name] = found.counts.get(name, 0) + count


def _checked(found: Trained) -> Trained:
    if not found.counts:
        found.faults.append('the training set is empty')
    return found


def stored(path: str) -> np.ndarray:
    """What a file holds, as :class:`meanings.Means` names it."""
    with Image.open(path) as image:
        pixels = np.asarray(image)
    if pixels.ndim == 3 and pixels.shape[-1] >= 3:
        red, green, blue = (pixels[..., channel].astype(np.int64) for channel in range(3))
        return red << 16 | green << 8 | blue
    pixels = pixels[..., 0] if pixels.ndim == 3 else pixels
    return pixels if pixels.dtype.kind == 'f' else pixels.astype(np.int64)


# ---- instances


def _of_boxes(data: Any, model: Any) -> Trained:
    from mmdet.registry import DATASETS
    from mmdet.utils import register_all_modules

    register_all_modules(init_default_scope=False)
    found = Trained('instances', num_classes_of_detector(model), model=model)
    leaf = next(leaves(data))
    is_coco = leaf['type'].rpartition('.')[2] == 'CocoDataset'
    file = json.loads((Path(leaf.get('data_root', '')) / leaf['ann_file']).read_text()) if is_coco else {}
    found.names = names_in(file) if is_coco else names_of_voc(Path(leaf.get('data_root', '')))
    try:
        dataset = DATASETS.build(leaf)
        infos = [dataset.get_data_info(place) for place in range(len(dataset))]
    except Exception as error:
        found.faults.append(f'the training set is empty ({type(error).__name__}: {error})')
        return found
    names = dataset.metainfo['classes']
    named = getattr(dataset, 'cat2label', {})
    in_file = {named[one['id']]: str(one['name']) for one in file.get('categories', ()) if one['id'] in named}
    found.boxes = boxes_of(infos)
    for info in infos:
        for instance in info['instances']:
            if not instance.get('ignore_flag'):
                label = instance['bbox_label']
                found.labels.append(label)
                name = str(names[label]) if label < len(names) else in_file.get(label, str(label))
                found.counts[name] = found.counts.get(name, 0) + 1
    if is_coco:
        found.faults += _renamed(file, named, names)
    return _checked(found)


def names_in(file: Any) -> Dict[Any, str]:
    """Annotation of a COCO file -> name of its category, as far as ids are unique."""
    named = {str(one.get('id')): str(one.get('name')) for one in file.get('categories', ())}
    ids = Counter(str(one.get('id')) for one in file.get('annotations', ()))
    return {
        str(one['id']): named[str(one['category_id'])]
        for one in file.get('annotations', ())
        if ids[str(one.get('id'))] == 1 and str(one.get('category_id')) in named
    }


def names_of_voc(root: Path) -> Dict[Any, str]:
    """Object, by its file, the number of objects there and its place among them -> its name."""
    found = {}
    for path in root.rglob('*.xml'):
        try:
            names = [one.findtext('name') or '' for one in ElementTree.parse(path).iter('object')]
        except ElementTree.ParseError:  # a file that is cut off
            continue
        found.update({(path.stem, len(names), place): name for place, name in enumerate(names)})
    return found


def boxes_of(infos: Iterable[Mapping[str, Any]]) -> Dict[str, List[Sequence[float]]]:
    """What mmdet's data sets say of their pictures."""
    found: Dict[str, List[Sequence[float]]] = {}
    for info in infos:
        boxes = [instance['bbox'] for instance in info['instances'] if not instance.get('ignore_flag')]
        found.setdefault(Path(info['img_path']).stem, []).extend(boxes)
    return found


def leaves(data: Any) -> Iterator[Any]:
    """The data sets in wrappers."""
    inner = data.get('datasets') or data.get('dataset')
    if inner is None:
        yield data
    for one in inner if isinstance(inner, (list, tuple)) else [inner] if inner else []:
        yield from leaves(one)


def _renamed(file: Mapping[str, Any], label_of: Mapping[Any, int], names: Any) -> List[str]:
    """Categories of a file that are trained under the name of another one of it."""
    in_file = {one['id']: str(one['name']) for one in file['categories']}
    known = {name.strip().lower() for name in in_file.values()}
    wrong = []
    for id_, label in label_of.items():
        name = str(names[label]) if label < len(names) else in_file.get(id_, '')
        if in_file.get(id_, name).strip().lower() != name.strip().lower() and name.strip().lower() in known:
            wrong.append(f'classes swapped: {in_file[id_]!r} is trained as {name!r}')
    return wrong


def num_classes_of_detector(model: Any) -> int:
    """The smallest number of classes of any head that tells classes apart."""
    return min(_numbers(model), default=0)


def _numbers(node: Any) -> List[int]:
    if isinstance(node, (list, tuple)):
        return [number for one in node for number in _numbers(one)]
    if not isinstance(node, Mapping):
        return []
    found = [node[key] for key in ('num_classes', 'num_things_classes') if isinstance(node.get(key), int)]
    return found + [number for one in node.values() for number in _numbers(one)]


# ---- without a config


def _without_config(path: Path, options: Mapping[str, Any]) -> Trained:
    sources = plan_target(str(path), ScanOptions(**options)).sources
    if path.is_dir() and sources and hasattr(sources[0], 'items'):
        return _of_folder(path, options)
    # A JSON or a VOC folder alone has no loader: what the scan says of it.
    facts = scan_sets(path, options)[0].facts
    found = Trained('instances', facts.num_classes)
    first = 0 if facts.annotations is None else facts.coco.min_label
    usable = facts.histogram if facts.annotations is None else facts.annotations.usable
    for label, count in usable.items():
        found.labels.append(label)
        if first <= label < facts.num_classes:
            found.counts[facts.name_of(label) or str(label)] = count
    found.boxes = _boxes_alone(path, facts)
    found.names = names_of_voc(path) if path.is_dir() else names_in(json.loads(path.read_text(encoding='utf-8')))
    return _checked(found)


def _boxes_alone(path: Path, facts: LabelFacts) -> Dict[str, List[Sequence[float]]]:
    """As mmdet's data set gives them; nothing where it cannot read the file."""
    from mmdet.registry import DATASETS
    from mmdet.utils import register_all_modules

    register_all_modules(init_default_scope=False)
    try:
        dataset = DATASETS.build(dict(data_of_boxes(path, facts), pipeline=[], filter_cfg=None))
        return boxes_of(dataset.get_data_info(place) for place in range(len(dataset)))
    except Exception:
        return {}


def data_of_boxes(path: Path, facts: LabelFacts) -> Dict[str, Any]:
    """mmdet's data set of a COCO JSON, or of a VOC folder."""
    metainfo = dict(classes=[str(name) for name in facts.annotations.categories.values()])
    if path.is_dir():
        place = dict(data_root=str(path), ann_file='ImageSets/Main/train.txt', data_prefix=dict(sub_data_root=''))
        return dict(type='XMLDataset', metainfo=metainfo, **place)
    return dict(type='CocoDataset', metainfo=metainfo, ann_file=str(path), data_prefix=dict(img=str(path.parent)))
