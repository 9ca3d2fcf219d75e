"""What reads the same files in a training: it must read whatever a scan calls clean."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any, List


def has(package: str) -> bool:
    """Whether a package is installed here."""
    return importlib.util.find_spec(package) is not None


def load_coco(folder: Path, file: str, argv: List[str]) -> None:
    if has('mmdet'):
        _every_sample('CocoDataset', folder, file, '--masks' in argv)


def load_lvis(folder: Path, file: str, argv: List[str]) -> None:
    if has('mmdet') and has('lvis'):
        _every_sample('LVISV1Dataset', folder, file, '--masks' in argv)
    elif has('mmdet'):
        with open(folder / file, encoding='utf-8') as opened:
            json.load(opened)


def _every_sample(type_: str, folder: Path, file: str, masks: bool) -> None:
    from mmdet.datasets.transforms import LoadAnnotations
    from mmdet.registry import DATASETS

    with contextlib.redirect_stdout(io.StringIO()):
        dataset = DATASETS.build(
            dict(
                type=type_,
                ann_file=str(folder / file),
                data_prefix=dict(img=''),
                metainfo=dict(classes=_names(folder / file)),
                pipeline=[],
                serialize_data=False,
                _scope_='mmdet',
            )
        )
    load = LoadAnnotations(with_bbox=True, with_mask=masks)
    for index in range(len(dataset)):
        info = dataset.get_data_info(index)
        load({**info, 'ori_shape': (info['height'], info['width'])})  # as LoadImageFromFile says it


def _names(path: Path) -> Any:
    with open(path, encoding='utf-8') as opened:
        return tuple(category['name'] for category in json.load(opened)['categories'])


def load_panoptic(folder: Path, file: str, argv: List[str]) -> None:
    """As mmdet reads it; the PNG by themselves, for its loader needs panopticapi."""
    if not has('mmdet'):
        return
    import mmcv
    from mmdet.datasets import CocoPanopticDataset

    names = _names(folder / 'train.json')
    with contextlib.redirect_stdout(io.StringIO()):
        dataset = CocoPanopticDataset(
            ann_file=str(folder / 'train.json'),
            data_prefix=dict(img='', seg=str(folder / 'train')),
            metainfo=dict(classes=names, thing_classes=names, stuff_classes=()),
            pipeline=[],
            serialize_data=False,
        )
    for index in range(len(dataset)):
        info = dataset.get_data_info(index)
        png = mmcv.imread(info['seg_map_path'], flag='color', channel_order='rgb').astype(int)
        ids = {int(number) for number in (png * (1, 256, 256**2)).sum(-1).flat} - {0}
        assert ids == {segment['id'] for segment in info['segments_info']}, info['seg_map_path']


def load_voc(folder: Path, file: str, argv: List[str]) -> None:
    for path in sorted((folder / 'Annotations').glob('*.xml')):
        ET.parse(path)
    if not has('mmdet'):
        return
    from mmdet.datasets import XMLDataset

    names = {name.text for path in (folder / 'Annotations').glob('*.xml') for name in ET.parse(path).iter('name')}
    dataset = XMLDataset(
        data_root=str(folder),
        ann_file='ImageSets/Main/train.txt',
        data_prefix=dict(sub_data_root=''),
        metainfo=dict(classes=tuple(sorted(name for name in names if name))),
        pipeline=[],
        serialize_data=False,
    )
    assert any(info['instances'] for info in dataset.data_list), 'mmdet finds no object'


def load_maps(folder: Path, file: str, argv: List[str]) -> None:
    if not has('mmseg'):
        return
    from mmseg.datasets.transforms import LoadAnnotations

    if file.endswith('.npy'):
        return
    loaded = LoadAnnotations()(
        dict(seg_map_path=str(folder / file), reduce_zero_label=False, label_map=None, seg_fields=[])
    )
    assert loaded['gt_seg_map'].ndim == 2, loaded['gt_seg_map'].shape


def load_arrays(folder: Path, file: str, argv: List[str]) -> None:
    import numpy as np

    if file.startswith('.'):  # what macOS leaves
        return
    if '--suffix' not in argv or file.endswith(argv[argv.index('--suffix') + 1]):
        np.load(folder / file)


def load_volumes(folder: Path, file: str, argv: List[str]) -> None:
    """With the reader that nnU-Net takes; without nnU-Net, or a dataset.json of that name, with nibabel."""
    import nibabel
    import numpy as np

    if not has('nnunetv2') or not (folder / 'dataset.json').exists():
        for path in sorted(folder.rglob('[!.]*.nii*')):
            np.asarray(nibabel.load(str(path)).dataobj)
        return
    from nnunetv2.imageio.reader_writer_registry import determine_reader_writer_from_dataset_json

    described = json.loads((folder / 'dataset.json').read_text(encoding='utf-8'))
    ending = described['file_ending']
    for label in sorted((folder / 'labelsTr').glob(f'[!.]*{ending}')):
        reader = determine_reader_writer_from_dataset_json(described, str(label), verbose=False)()
        reader.read_seg(str(label))
        case = label.name[: -len(ending)]
        reader.read_images([str(path) for path in sorted((folder / 'imagesTr').glob(f'{case}_????{ending}'))])
