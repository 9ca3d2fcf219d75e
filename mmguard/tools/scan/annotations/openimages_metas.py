"""OpenImages' ``meta_file``, the sizes of the images in the order of the annotations. A pickle: its code is not run."""

from __future__ import annotations

import os
from typing import Any, List, Sequence, Tuple

import numpy as np

from mmguard.files.plain_pickle import RefusedName, load_plain_pickle
from mmguard.files.regular import open_regular
from mmguard.tools.scan.annotations.faults import Faults, short

#: File name, height, width.
Meta = Tuple[str, float, float]


def read_metas(path: str, faults: Faults) -> List[Meta]:
    """Reads a meta file. Never raises for what it holds.

    Args:
        path (str): The pickle that mmdet's ``tools/misc/get_image_metas.py`` writes.
        faults (Faults): Takes what is wrong.

    Returns:
        list[tuple[str, float, float]]: File name without its folder, height and width, in the order of the file; empty
        where it cannot be read.
    """
    source = os.path.basename(path) or path
    try:
        with open_regular(path) as file:
            metas = [_meta(meta) for meta in load_plain_pickle(file)]
        if not metas:
            faults.add('has no image meta: mmdet stops here', source)
        return metas
    except OSError as error:
        faults.add(f'cannot be opened: {error.strerror or error}', source)
    except RefusedName as error:
        faults.add('is a pickle that is not read: it may run code', f'{source}: {short(str(error))}')
    except Exception as error:  # a damaged pickle raises what it likes
        why = f'{source}: {type(error).__name__}: {short(str(error))}'
        faults.add('is no list of image metas: mmdet stops here', why)
    return []


def _meta(meta: Any) -> Meta:
    height, width = meta['ori_shape'][:2]
    if not (0 < height < np.inf and 0 < width < np.inf):  # texts cannot be compared
        raise ValueError(f'the size {short((height, width))} is not above 0 and finite')
    return os.path.basename(meta['filename']), float(height), float(width)


def compare_metas(metas: Sequence[Meta], listed: Sequence[str], source: str, faults: Faults) -> None:
    """Compares the metas with the images of the annotations, one by one, as mmdet does.

    Args:
        metas (list[tuple]): As ``read_metas`` gives them.
        listed (list[str]): The images in the order of the annotations, one anew each time that it changes.
        source (str): How messages name the meta file.
        faults (Faults): Takes what differs.
    """
    if len(metas) != len(listed):
        faults.add(
            'has another number of images than the annotations: mmdet stops here',
            f'{source}: {len(metas):,} metas, {len(listed):,} images with annotations',
        )
    for place, (image, (name, _, _)) in enumerate(zip(listed, metas)):
        if name != image:
            faults.add(
                'has its images in another order than the annotations: mmdet stops here',
                f'{source}: meta {place + 1} is of {name}, the annotations have {image} there',
            )
            return


def sizes_of(metas: Sequence[Meta], images: Sequence[str]) -> np.ndarray:
    """float64 (M, 2), height and width of images; NaN where no meta says them."""
    known = {name: (height, width) for name, height, width in metas}
    return np.array([known.get(image, (np.nan, np.nan)) for image in images], float).reshape(-1, 2)
