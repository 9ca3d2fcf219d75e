"""What `apply` writes makes ignored pixels of invalid ones: they average as the user's own ignored pixels do."""

from __future__ import annotations

import copy
import glob
import uuid
from pathlib import Path
from typing import Any, Dict

import numpy as np
import pytest
from mmengine.config import Config
from PIL import Image
from small_runs import LOAD, PACK, make_cityscapes, tiny_config, train

import mmguard

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings('ignore:Default ``avg_non_ignore``')]

INVALID = 44


@pytest.fixture
def half_invalid(tmp_path: Path) -> Dict[str, str]:
    """The same data set twice: the lower half of its label maps is invalid, or is 255 by hand."""
    roots = {}
    for name, value in (('invalid', INVALID), ('by_hand', 255)):
        roots[name] = make_cityscapes(str(tmp_path / name), planted={})
        for path in glob.glob(f'{roots[name]}/gtFine/train/*/*.png'):
            with Image.open(path) as image:
                label = np.array(image)
            label[label.shape[0] // 2 :] = value
            Image.fromarray(label).save(path)
    return roots


def first_loss(config: Config) -> float:
    return float(train(config).scalars[0]['loss'])


@pytest.mark.parametrize('avg_non_ignore', [False, True])
def test_invalid_pixels_average_as_ignored_ones(
    avg_non_ignore: bool, half_invalid: Dict[str, str], tmp_path: Path
) -> None:
    def config(root: str, loss: str = 'CrossEntropyLoss') -> Config:
        made = tiny_config(half_invalid[root], str(tmp_path / uuid.uuid4().hex), iters=1, pipeline=[*LOAD, PACK])
        made.model.decode_head.loss_decode = dict(type=loss, avg_non_ignore=avg_non_ignore)
        return made

    by_hand = first_loss(config('by_hand'))
    written = mmguard.guard_config(config('invalid'))
    assert [step['type'] for step in written.train_dataloader.dataset.pipeline][-1] == 'GuardSegLabels'
    assert first_loss(written) == pytest.approx(by_hand, rel=1e-6)
    # What reaches the loss as invalid is deleted: neither sum nor denominator know it.
    deleted = first_loss(config('invalid', 'GuardedCrossEntropyLoss'))
    all_average: Any = copy.deepcopy(config('by_hand'))
    all_average.model.decode_head.loss_decode.avg_non_ignore = True
    share = 0.5 if not avg_non_ignore else 1.0
    assert by_hand == pytest.approx(share * first_loss(all_average), rel=0.05)
    assert deleted > by_hand * (1.9 if not avg_non_ignore else 0.99)
