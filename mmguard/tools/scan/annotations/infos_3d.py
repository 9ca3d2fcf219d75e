"""What the data sets of an mmdet3d config list: the records of their info files, read as plain data."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Tuple

from mmguard.config.classes import class_of
from mmguard.config.parts import OF_OBJECTS_3D, OF_POINTS
from mmguard.files.plain_arrays import load_plain_arrays
from mmguard.files.plain_pickle import RefusedName
from mmguard.text.failures import words_of
from mmguard.tools.scan.annotations.faults import Faults
from mmguard.tools.storage.backend_files import files_of
from mmguard.tools.storage.urls import entered, is_url

_OF_FRAMEWORKS = ('mmengine.', 'mmdet3d.')


class Info(NamedTuple):
    """A sample, with the paths that its data set makes of what is listed.

    Attributes:
        where (str): How messages name it, ``'infos.pkl: data_list[3]'``.
        record (dict): It.
    """

    where: str
    record: Dict[str, Any]


def base_of(config: Mapping[str, Any]) -> str:
    """The class of mmdet3d that a data set derives from, ``'Seg3DDataset'`` or ``'Det3DDataset'``; else empty."""
    bases = [base.__name__ for base in getattr(_class(config), '__mro__', ())]
    return next((name for name in (OF_POINTS, OF_OBJECTS_3D) if name in bases), '')


def _class(config: Mapping[str, Any]) -> Any:
    return class_of(config.get('type'), 'DATASETS', str(config.get('_scope_') or 'mmdet3d'))


def opened(config: Mapping[str, Any]) -> Any:
    """A data set that has read nothing: for its paths, classes and tables.

    Raises:
        Exception: What its class raises.
    """
    light = {key: value for key, value in config.items() if key not in ('type', '_scope_', 'pipeline')}
    # A training set of S3DIS would read its files at once.
    dataset = _class(config)(**{**light, 'pipeline': [], 'lazy_init': True, 'test_mode': True})
    dataset.parse_ann_info = lambda info: {}  # objects are judged here, it stops at labels that it does not know
    return dataset


def info_files(config: Mapping[str, Any], dataset: Any) -> List[str]:
    """The files that list the samples of a data set."""
    several = config.get('ann_files')
    listed = [several] if isinstance(several, str) else list(several or ())
    root = str(dataset.data_root or '')
    joined = [one if is_url(one) else os.path.join(root, one) for one in listed]
    return [entered(str(path)) for path in joined or [dataset.ann_file]]


def read_infos(
    config: Mapping[str, Any], dataset: Any, faults: Faults
) -> Tuple[Dict[str, Dict[str, Any]], Iterator[Info]]:
    """What the info files of a data set hold.

    Args:
        config (dict): Of the data set.
        dataset (BaseDataset): It, as :func:`opened` returns it.
        faults (Faults): Takes what cannot be read.

    Returns:
        tuple: file -> its ``metainfo``; the samples, one after the other.
    """
    if not type(dataset).load_data_list.__module__.startswith(_OF_FRAMEWORKS):
        return {}, _listed(dataset, faults)
    lists: Dict[str, List[Any]] = {}
    metainfo: Dict[str, Dict[str, Any]] = {}
    for file in info_files(config, dataset):
        content = _content(config, file, faults)
        listed = content.get('data_list') if isinstance(content, dict) else None
        if isinstance(listed, list):
            said = content.get('metainfo')
            lists[file], metainfo[file] = listed, said if isinstance(said, dict) else {}
        elif content is not None:
            old = isinstance(content, list)  # of mmdet3d before 1.1
            convert = ': convert it with tools/dataset_converters/update_infos_to_v2.py' if old else ''
            faults.add(f'is no info file with metainfo and data_list{convert}', os.path.basename(file))
    return metainfo, _parsed(dataset, lists, faults)


def _listed(dataset: Any, faults: Faults) -> Iterator[Info]:
    """The samples as a class of the user's lists them."""
    name = f'{type(dataset).__name__}.load_data_list()'
    try:
        records = dataset.load_data_list()
    except Exception as error:  # it may raise anything
        faults.add('samples cannot be listed', f'{name}: {words_of(error, 100)}')
        return
    for number, record in enumerate(records):
        yield Info(f'{name}[{number}]', record)


def _parsed(dataset: Any, lists: Mapping[str, List[Any]], faults: Faults) -> Iterator[Info]:
    for file, listed in lists.items():
        for number in range(0, len(listed), int(getattr(dataset, 'load_interval', 1) or 1)):  # of Waymo
            record = listed[number]
            where = f'{os.path.basename(file)}: data_list[{number}]'
            try:
                if not isinstance(record, dict):
                    raise TypeError(f'{type(record).__name__} in place of a dict')
                made = dataset.parse_data_info(record)
            except KeyError as error:
                faults.add(f'a sample has no {error}', where)
                continue
            except Exception as error:  # of a class of the user's, or for want of numbers
                faults.add(f'a sample cannot be parsed: {words_of(error, 100)}', where)
                continue
            several = made if isinstance(made, list) else [made]  # of cameras, each a sample
            for one in several:
                yield Info(where, one)


def _content(config: Mapping[str, Any], file: str, faults: Faults) -> Any:
    name = os.path.basename(file)
    try:
        with files_of(config.get('backend_args'), file).open(file) as opened_file:
            return json.load(opened_file) if file.endswith('.json') else load_plain_arrays(opened_file)
    except RefusedName as error:
        faults.add('the file is a pickle that is not read', f'{name}: {error}')
    except (OSError, ValueError) as error:
        faults.add('cannot be read', f'{name}: {getattr(error, "strerror", None) or words_of(error, 100)}')
    except Exception as error:  # a damaged pickle raises what it likes
        faults.add('is damaged, or no pickle', f'{name}: {words_of(error, 100)}')
    return None
