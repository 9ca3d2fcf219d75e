"""All configs that ship with mmseg and mmdet, by folder: `make test-edits`, not the daily suite.

mmengine copies each file of each base to a temporary folder, so most of the time passes with reading: each config is
read once, and one model of each family is built, which is guarded after its spaces were compared.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any, Dict, List, Set, Tuple

import pytest
from test_loss_selection import check_selection
from test_spaces_official import build, check_model, check_tools, family, load, not_built

from benchmarks.official_configs import shipped_configs

FOLDERS: Dict[str, List[Tuple[str, Path]]] = defaultdict(list)
for _root, _file in shipped_configs():
    if '_base_' not in _file.parts:
        FOLDERS[str(_file.parent.relative_to(_root)).replace('.mim/configs/', '')].append((_root, _file))


class Seen:
    """Configs that could be read, and families that were built, of the folders before."""

    def __init__(self) -> None:
        self.configs: Dict[str, int] = {}
        self.families: Set[Any] = set()


@pytest.fixture(scope='module')
def seen() -> Seen:
    return Seen()


@pytest.mark.timeout(1200)
@pytest.mark.parametrize('folder', FOLDERS)
def test_one_answer_and_one_selection(folder: str, seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    seen.configs[folder] = 0
    for official in load(FOLDERS[folder]):
        seen.configs[folder] += 1
        check_tools(official)
        kind = family(official.read)
        if kind not in seen.families and not_built(official) is None:
            seen.families.add(kind)
            model = build(official, monkeypatch)
            check_model(official, model)
            check_selection(official, model, monkeypatch)


def test_all_were_read(seen: Seen) -> None:
    if len(seen.configs) < len(FOLDERS):
        pytest.skip('some folders were left out')
    assert sum(seen.configs.values()) > 1_400
    assert len(seen.families) > 100
