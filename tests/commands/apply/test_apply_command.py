"""`mmguard apply`: what it writes, refuses and says."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mmengine.config import Config
from put_file import put, put_config
from this_stack import base_line

import mmguard
from mmguard.cli import main
from mmguard.commands.apply.command import apply
from mmguard.commands.apply.output import remove_scopes, write_overlay
from mmguard.compat.stack import find_config_file
from mmguard.config.read import ReadConfig
from mmguard.findings import plugins
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule

pytest.importorskip('mmseg')

PIDNET = 'mmseg::pidnet/pidnet-s_2xb6-120k_1024x1024-cityscapes.py'
NEW_STYLE = Path(__file__).parents[3] / 'configs' / 'new_style' / 'fcn_r50_cityscapes.py'

MINE = """\
_base_ = ['mmdet::retinanet/retinanet_r50_fpn_1x_coco.py']
custom_hooks = [dict(type='NumClassCheckHook')]
model = dict(bbox_head=dict(num_classes=3))
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    return put(tmp_path / 'my configs' / 'mine.py', MINE)


def test_a_config_of_ones_own_is_inherited_from_by_its_relative_path(
    mine: Path, tmp_path: Path, capsys: Any, snapshot: Any
) -> None:
    out = tmp_path / 'guarded' / 'mine_guarded.py'
    assert main(['apply', str(mine), '-o', str(out), '--no-verify']) == 0
    text = out.read_text()
    assert "_base_ = ['../my configs/mine.py']" in text
    assert "custom_hooks = [*_base_.custom_hooks, dict(type='LabelGuardHook')]" in text
    guard = "dict(type='GuardInstanceLabels', num_classes=3, keep_ignored=False)"
    assert f'train_pipeline = [*_base_.train_pipeline, {guard}]' in text
    assert len(text.splitlines()) < 25
    guarded = mmguard.guard_config(Config.fromfile(mine))
    assert remove_scopes(Config.fromfile(out).to_dict()) == remove_scopes(guarded.to_dict())
    assert mine.read_text() == MINE
    assert sorted(path.name for path in out.parent.iterdir()) == ['mine_guarded.py']
    said = capsys.readouterr().out
    snapshot('apply', 'guards', said.replace(str(mine), 'mine.py'))


def test_the_same_again_changes_nothing(mine: Path, tmp_path: Path) -> None:
    out, again = tmp_path / 'out.py', tmp_path / 'again.py'
    assert main(['apply', str(mine), '-o', str(out)]) == 0
    before = out.stat().st_mtime_ns
    assert main(['apply', str(mine), '-o', str(out)]) == 0
    assert out.stat().st_mtime_ns == before
    assert main(['apply', str(out), '-o', str(again)]) == 0
    assert Config.fromfile(again).to_dict() == Config.fromfile(out).to_dict()


def test_a_shipped_file_is_inherited_from_by_its_framework(tmp_path: Path) -> None:
    path = find_config_file(PIDNET)
    out = tmp_path / 'out.py'
    assert main(['apply', path, '-o', str(out)]) == 0
    text = out.read_text()
    assert base_line(PIDNET) in text
    assert "dict(_base_.model.decode_head.loss_decode[0], type='GuardedCrossEntropyLoss')" in text
    assert "dict(_base_.model.decode_head.loss_decode[1], type='GuardedOhemCrossEntropy')" in text


def test_a_new_style_config_is_written_in_full(tmp_path: Path) -> None:
    out, again = tmp_path / 'out.py', tmp_path / 'again.py'
    assert main(['apply', str(NEW_STYLE), '-o', str(out)]) == 0
    assert '_base_' not in out.read_text()
    config, guarded = Config.fromfile(out), mmguard.guard_config(Config.fromfile(NEW_STYLE))
    assert config.to_dict() == guarded.to_dict()
    assert config.custom_hooks == [dict(type='mmguard.LabelGuardHook')]
    assert main(['apply', str(out), '-o', str(again)]) == 0
    assert Config.fromfile(again).to_dict() == config.to_dict()


def test_what_is_there_is_not_overwritten_unless_forced(mine: Path, tmp_path: Path, capsys: Any) -> None:
    out = put(tmp_path / 'out.py', '# hours of work\n')
    assert main(['apply', str(mine), '-o', str(out)]) == 2
    assert out.read_text() == '# hours of work\n'
    assert str(out) in capsys.readouterr().err
    assert main(['apply', str(mine), '-o', str(out), '--force']) == 0
    assert 'GuardInstanceLabels' in out.read_text()


@pytest.mark.parametrize(
    ('text', 'named'),
    [
        ('_base_ = []', 'model'),
        (None, 'source.py'),
    ],
)
def test_what_is_no_config_is_refused(text: Any, named: str, tmp_path: Path, capsys: Any) -> None:
    source, out = tmp_path / 'source.py', tmp_path / 'out.py'
    if text is not None:
        source.write_text(text)
    assert main(['apply', str(source), '-o', str(out)]) == 2
    assert named in capsys.readouterr().err
    assert not out.exists()


def test_what_is_written_ends_with_py(mine: Path, tmp_path: Path, capsys: Any) -> None:
    assert main(['apply', str(mine), '-o', str(tmp_path / 'out.yaml')]) == 2
    assert '.py' in capsys.readouterr().err


# ---- the text of a difference


LEAVES = st.one_of(st.integers(-3, 3), st.booleans(), st.none(), st.sampled_from(['a', "it's", 'x y']))
KEYS = st.sampled_from(['type', 'loss', 'items', 'lambda', 'a b', 'steps'])
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.tuples(inner), st.dictionaries(KEYS, inner, min_size=1, max_size=4)
    ),
    max_leaves=12,
)
TOP = st.dictionaries(st.sampled_from(['model', 'train_pipeline', 'data', 'custom_hooks']), TREES, max_size=4)


@settings(max_examples=150, deadline=None)
@given(old=TOP, new=TOP)
@example(old={'model': {'type': None, 'lambda': 0}}, new={'model': {'lambda': 0}})
def test_a_difference_that_loads_gives_the_new_config(old: Any, new: Any, tmp_path_factory: Any) -> None:
    """mmengine refuses a dict over what is none, so apply falls back there; otherwise the text must be right."""
    folder = tmp_path_factory.mktemp('difference')
    new = {**old, **new}
    put_config(folder / 'old.py', **old)
    (folder / 'new.py').write_text(write_overlay('./old.py', old, new))
    try:
        loaded = Config.fromfile(folder / 'new.py').to_dict()
    except TypeError as error:
        loaded = new if '_delete_' in str(error) else str(error)
    assert loaded == new


class Raises(ConfigRule):
    """A rule with a bug."""

    code = 'MG299'
    summary = why = advice = 'It raises.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        raise LookupError('a rule was evaluated')
        yield


def test_without_an_edit_no_rule_is_evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, 'RULES', [Raises])
    out = tmp_path / 'out.py'
    with pytest.raises(LookupError):
        apply(PIDNET, out, edits=['safe'])
    assert apply(PIDNET, out) == 0
    assert out.is_file()
