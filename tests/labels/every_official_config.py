"""All configs that ship with mmseg and mmdet: `make test-edits`, not the daily suite."""

from __future__ import annotations

import pytest
from test_loss_selection import check_selection, each_family
from test_spaces_official import check_models, check_tools, load

from benchmarks.official_configs import shipped_configs


@pytest.mark.timeout(3600)
def test_one_answer_for_all_configs(monkeypatch: pytest.MonkeyPatch) -> None:
    configs = list(load(shipped_configs()))
    assert len(configs) > 1_400
    for official in configs:
        check_tools(official)
    assert check_models(configs, monkeypatch) > 100


@pytest.mark.timeout(3600)
def test_one_selection_for_all_families(monkeypatch: pytest.MonkeyPatch) -> None:
    families = list(each_family(load(shipped_configs())))
    assert len(families) > 100
    for official in families:
        check_selection(official, monkeypatch)
