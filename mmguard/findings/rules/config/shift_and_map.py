from __future__ import annotations

from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any, Dict, Iterator, Optional

from mmguard.compat.stack import distributions_of
from mmguard.config.parts import datasets
from mmguard.config.read import ReadConfig
from mmguard.files.regular import temporary_folder
from mmguard.findings.config_facts import label_map_of
from mmguard.findings.finding import ERROR, INFO, Finding
from mmguard.findings.rule import ConfigRule, Example, Facts

#: What the trial loads, and what becomes of it: 2 is shifted to 1, and mapped, or mapped and shifted.
_STORED, _MAP, _SHIFTED_FIRST = 2, {1: 3, 2: 9}, 3


class ShiftAndMap(ConfigRule):
    """``reduce_zero_label`` together with the label map that some classes of a data set make: the order matters."""

    code = 'MG232'
    severity = INFO
    summary = 'reduce_zero_label and a label_map at once: which comes first depends on the version of mmseg.'
    title = '{kind} has a label_map and reduce_zero_label, but {mmseg} maps first, and subtracts 1 from the result.'
    title_right = (
        '{kind} has a label_map and reduce_zero_label: {mmseg} rightly subtracts 1 first, older than 1.0.0 maps first.'
    )
    why = (
        'A data set that is given some of its classes maps the labels of its own list to theirs. That list counts '
        'without 0, so 1 must be subtracted first. mmseg before 1.0.0 mapped first: every class was its neighbour.'
    )
    example = Example(wrong="mmseg 0.30: metainfo=dict(classes=('sky', 'wall'))", right='the same with mmseg 1.0.0')
    limits = 'The loader that is installed here is tried; the one of the machine that trains may differ.'
    advice = (
        'Upgrade an mmseg that maps first: `pip install -U mmsegmentation`. One that subtracts first is right, and '
        'nothing is to be done; `mmguard trace CONFIG` shows what becomes of each value.'
    )

    def find(self, facts: Facts) -> Iterator[Finding]:
        # Labels that were read show what the order makes of them; it is not a finding then that it is right.
        yield from (found for found in super().find(facts) if facts.labels is None or found.severity == ERROR)

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for dataset in datasets(config):
            moved = {raw: label for raw, label in label_map_of(dataset).items() if raw != label}
            if not moved or dataset.get('reduce_zero_label') is not True:
                continue
            shifts_first = _shifts_first()
            if shifts_first is None:
                continue
            words = dict(kind=dataset.name, mmseg=_name_installed())
            title, severity = (self.title_right, INFO) if shifts_first else (self.title, ERROR)
            yield self.report_at(dataset.at('reduce_zero_label'), True, words, title, severity)


@lru_cache(maxsize=None)
def _shifts_first() -> Optional[bool]:
    """Return True if the loader that is installed shifts first, by trial; ``None`` where it cannot be asked."""
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


def _name_installed() -> str:
    for name in distributions_of('mmseg'):
        try:
            return f'{name} {metadata.version(name)}'
        except metadata.PackageNotFoundError:
            continue
    return 'mmseg'
