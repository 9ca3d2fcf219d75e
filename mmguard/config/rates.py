"""How fast a config trains, and the config that it was made from."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any, Dict, List, NamedTuple, Optional

from mmguard.config.bases import bases_of
from mmguard.config.load import load_config
from mmguard.config.read import ReadConfig
from mmguard.errors import CannotRun

LR, BATCH = 'optim_wrapper.optimizer.lr', 'train_dataloader.batch_size'


class Rates(NamedTuple):
    """What a config says about its steps.

    Attributes:
        optimizer (str): Its type.
        lr (float): The learning rate.
        batch_size (int): Images of a batch on each device.
        multiplied (dict[str, float]): Part of the model -> its ``lr_mult``.
    """

    optimizer: str
    lr: float
    batch_size: int
    multiplied: Dict[str, float]


def rates_of(config: ReadConfig) -> Optional[Rates]:
    """The rates of a config; ``None`` where it does not say all of them."""
    wrapper = config.part('optim_wrapper')
    optimizer = wrapper.get('optimizer')
    batch_size: Any = config.part('train_dataloader').get('batch_size')
    lr: Any = optimizer.get('lr') if isinstance(optimizer, dict) else None
    if not isinstance(optimizer, dict) or not _is_number(lr) or not _is_number(batch_size):
        return None
    paramwise = wrapper.get('paramwise_cfg')
    keys = paramwise.get('custom_keys') if isinstance(paramwise, dict) else None
    multiplied = {
        str(key): float(value['lr_mult'])
        for key, value in (keys.items() if isinstance(keys, dict) else ())
        if isinstance(value, dict) and _is_number(value.get('lr_mult'))
    }
    return Rates(str(optimizer.get('type')).rpartition('.')[2], float(lr), int(batch_size), multiplied)


def base_with_rates(file: str) -> Optional[str]:
    """The nearest base of a config that is one to train with: it has a model, and says all of its rates."""
    level = bases_of(file) if os.path.isfile(file) else []
    seen = set(level)
    while level:
        for base in level:
            if rates_of_file(base) is not None:
                return base
        following: List[str] = [base for one in level for base in bases_of(one) if base not in seen]
        seen.update(following)
        level = following
    return None


def rates_of_file(file: str) -> Optional[Rates]:
    """The rates of a config file with a model. A base was run already, when what stands on it was read."""
    try:
        return _rates_of_file(file, os.stat(file).st_mtime_ns)
    except OSError:
        return None


@lru_cache(maxsize=64)
def _rates_of_file(file: str, _: int) -> Optional[Rates]:
    try:
        config = ReadConfig(load_config(file, import_custom_modules=False).to_dict(), file)
    except CannotRun:  # the parts of a config, as those in _base_, may not stand alone
        return None
    return rates_of(config) if config.part('model') else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0
