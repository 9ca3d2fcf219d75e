from __future__ import annotations

from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any, Dict, Iterator, Optional

from mmguard.compat.stack import distributions_of
from mmguard.config.parts import datasets
from mmguard.config.read import ReadConfig
from mmguard.files.whole import temporary_folder
from mmguard.findings.config_facts import label_map_of
from mmguard.findings.finding import ERROR, INFO, Finding
from mmguard.findings.rule import ConfigRule, Facts

#: What the trial loads, and what becomes of it: 2 is shifted to 1, and mapped, or mapped and shifted.
_STORED, _MAP, _SHIFTED_FIRST = 2, {1: 3, 2: 9}, 3


class ShiftAndMap(ConfigRule):
    """``reduce_zero_label`` together with the label map that some classes of a data set make: the order matters."""

    code = 'MG232'
    severity = INFO
    summary = 'reduce_zero_label and a label_map at once: which comes first depends on the version of mmseg.'
    why = (
        'A data set that is given some of its classes maps the labels of its own list to theirs. That list counts '
        'without 0, so 1 must be subtracted first. mmseg before 1.0.0 mapped first: every class was its neighbour.'
    )
    advice = 'Upgrade mmseg to 1.0.0 or later: `pip install -U mmsegmentation`.'
    right = (
        'Nothing is to be done with this version. Where the same config runs with another, `mmguard trace CONFIG` '
        'shows what becomes of each value there.'
    )

    def find(self, facts: Facts) -> Iterator[Finding]:
        # Labels that were read show what the order makes of them; that it is right is no finding then.
        yield from (found for found in super().find(facts) if facts.labels is None or found.severity == ERROR)

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for dataset in datasets(config):
            moved = {raw: label for raw, label in label_map_of(dataset).items() if raw != label}
            if not moved or dataset.get('reduce_zero_label') is not True:
                continue
            shifts_first = _shifts_first()
            if shifts_first is None:
                continue
            does = 'subtracts 1 first, as it should' if shifts_first else 'maps first, and subtracts 1 from classes'
            yield self.at(
                dataset.at('reduce_zero_label'),
                True,
                f'{dataset.name} is given some of its classes, so it has a label_map, and reduce_zero_label: '
                f'{_installed()} {does}; mmseg before 1.0.0 mapped first.',
                self.right if shifts_first else self.advice,
                INFO if shifts_first else ERROR,
            )


@lru_cache(maxsize=None)
def _shifts_first() -> Optional[bool]:
    """What the loader that is installed does, by trial; ``None`` where it cannot be asked."""
    try:
        import numpy as np
        from mmseg.datasets.transforms import LoadAnnotations
        from PIL import Image

        with temporary_folder() as folder:
            path = Path(folder, 'label.png')
            Image.fromarray(np.full((2, 2), _STORED, np.uint8)).save(path)
            results: Dict[str, Any] = dict(
                seg_map_path=str(path), reduce_zero_label=True, label_map=_MAP, seg_fields=[]
            )
            LoadAnnotations().transform(results)
        return bool((results['gt_seg_map'] == _SHIFTED_FIRST).all())
    except Exception:  # whatever is installed
        return None


def _installed() -> str:
    for name in distributions_of('mmseg'):
        try:
            return f'{name} {metadata.version(name)}'
        except metadata.PackageNotFoundError:
            continue
    return 'mmseg'
