"""``mmguard check`` from the outside: what it prints, writes and returns."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from changed_configs import PIDNET, PSPNET, official_file
from put_file import put
from warm import run

from benchmarks.official_configs import check, shipped_configs
from mmguard.cli import main
from mmguard.findings.engine import select_rules

pytest.importorskip('mmseg')
pytest.importorskip('mmdet')


def inherit(folder, text='', base=PSPNET, name='mine.py'):
    """Write a config of one's own that inherits from an official one."""
    return str(put(folder / name, f'_base_ = [{str(official_file(base))!r}]\n{text}\n'))


@pytest.fixture
def wrong(tmp_path):
    return inherit(tmp_path, 'model = dict(auxiliary_head=dict(num_classes=11))')


def test_clean(capsys, snapshot):
    assert main(['check', str(official_file(PSPNET))]) == 0
    out = capsys.readouterr().out
    assert f'`mmguard scan {official_file(PSPNET)}`' in out
    snapshot('check', 'nothing found', out)


@pytest.mark.parametrize('name', ['my config.py', 'two  blanks.py', "it's {n} %s.py"])
def test_commands_are_quoted_for_a_shell(name, tmp_path, capsys):
    file = inherit(tmp_path, name=name)
    assert main(['check', file]) == 0
    commands = re.findall('`(mmguard .*?)`', capsys.readouterr().out)
    assert [shlex.split(command)[2:] for command in commands] == [[file]] * 2


def test_val_and_test_are_reported_together(tmp_path, capsys):
    file = inherit(tmp_path, 'val_evaluator = dict(ignore_index=19)\ntest_evaluator = dict(ignore_index=19)')
    assert main(['check', file, '--json', '-']) == 1
    (finding,) = json.loads(capsys.readouterr().out)['findings']
    assert (finding['code'], finding['severity'], finding['value']) == ('MG208', 'warning', 19)
    assert finding['places'] == ['val_evaluator.ignore_index', 'test_evaluator.ignore_index']


def test_select_ignore_and_all(tmp_path, capsys):
    losses = "losses = _base_.model.decode_head.loss_decode\nlosses[0]['avg_non_ignore'] = True\n"
    model = 'model = dict(decode_head=dict(loss_decode=losses))'  # onedl's loss fails with avg_non_ignore alone
    file = inherit(tmp_path, losses + model, PIDNET)
    assert main(['check', file, '--ignore', 'MG214']) == 0
    assert 'MG214' not in capsys.readouterr().out
    assert main(['check', file, '--select', 'mg214']) == 1
    assert main(['check', file, '--select', 'MG2', '--ignore', 'MG214']) == 0


def test_json_to_a_file_and_to_standard_output(wrong, tmp_path, capsys):
    file = tmp_path / 'found.json'
    assert main(['check', wrong, '--json', str(file)]) == 1
    assert 'MG201' in capsys.readouterr().out
    assert main(['check', wrong, '--json', '-']) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads(file.read_text())
    (finding,) = printed['findings']
    assert finding['places'] == ['model.auxiliary_head.num_classes']
    assert finding['value'] == 11
    assert [edit['config'] for edit in finding['edits']] == [{'model.auxiliary_head.num_classes': 19}]
    assert printed['framework'] == 'mmseg'
    assert 'MG201' in printed['rules']
    assert {code for code in printed['rules'] if code.startswith('MG1')} == {'MG160', 'MG162'}
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith('.')] == []


def test_a_config_that_ships_is_named_in_either_stack(capsys):
    assert main(['check', 'mmseg::pspnet/pspnet_r50-d8_4xb2-40k_cityscapes-512x1024.py']) == 0
    assert main(['check', 'mmseg::pspnet/no_such.py']) == 2
    assert 'pspnet/no_such.py' in capsys.readouterr().err
    assert main(['check', 'no_such_package::pspnet/pspnet.py']) == 2
    assert 'no_such_package' in capsys.readouterr().err


def test_other_misuse_is_code_2(wrong, tmp_path, capsys):
    assert main(['check', wrong, '--select', 'MG999']) == 2
    assert 'MG999' in capsys.readouterr().err
    (tmp_path / 'file').write_text('mine')
    assert main(['check', wrong, '--json', str(tmp_path / 'file' / 'found.json')]) == 2
    assert str(tmp_path / 'file') in capsys.readouterr().err


@pytest.mark.slow
def test_custom_imports_of_the_working_directory_are_honoured(tmp_path):
    (tmp_path / 'my_polyps.py').write_text(
        'from mmseg.datasets import BaseSegDataset\n'
        'from mmseg.registry import DATASETS\n'
        '@DATASETS.register_module()\n'
        'class Polyps(BaseSegDataset):\n'
        "    METAINFO = dict(classes=('polyp', 'rest'), palette=[[0, 0, 0], [1, 1, 1]])\n"
        '    def __init__(self, reduce_zero_label=True, **kwargs):\n'
        '        super().__init__(reduce_zero_label=reduce_zero_label, **kwargs)\n'
    )
    imports = "custom_imports = dict(imports=['my_polyps', 'no_such_module'], allow_failed_imports=False)"
    inherit(tmp_path, f"{imports}\ntrain_dataloader = dict(dataset=dict(type='Polyps'))")
    command = "import sys\nfrom mmguard.cli import main\nsys.exit(main(['check', 'mine.py', '--json', 'found.json']))"
    done = run(command, folder=str(tmp_path))
    assert done.returncode == 1, done.output
    record = json.loads((tmp_path / 'found.json').read_text())
    findings = [finding for finding in record['findings'] if finding['code'] == 'MG201']
    assert {finding['value'] for finding in findings} == {19}
    assert {value for finding in findings for edit in finding['edits'] for value in edit['config'].values()} >= {2}
    assert 'no_such_module' in record['notes'][0]


def test_an_unknown_type_is_no_exception(tmp_path):
    head = "model = dict(decode_head=dict(type='MyHead'))"
    file = inherit(tmp_path, f"{head}\ntrain_dataloader = dict(dataset=dict(type='MyData'))")
    assert main(['check', file]) == 0


def test_codes_may_be_beginnings():
    chosen = {rule.code for rule in select_rules(['MG21'], ['MG215'])}
    assert chosen == {'MG210', 'MG211', 'MG214'}


def test_the_pure_python_style(tmp_path, capsys):
    official = (Path(__file__).parents[3] / 'configs' / 'new_style' / 'fcn_r50_cityscapes.py').read_text()
    plain = 'loss_decode=dict(type=CrossEntropyLoss'
    assert plain in official
    file = put(tmp_path / 'mine.py', official.replace(plain, f'{plain}, avg_non_ignore=True, class_weight=[1.0] * 18'))
    assert main(['check', str(file), '--json', '-']) == 1
    findings = json.loads(capsys.readouterr().out)['findings']
    assert [(finding['code'], finding['severity']) for finding in findings[:2]] == [
        ('MG207', 'error'),
        ('MG214', 'error'),
    ]
    assert findings[0]['places'] == ['model.decode_head.loss_decode.class_weight']
    assert findings[0]['value'] == [1.0] * 18


#: True of these configs as they are written, and nothing else is found.
TRUE = {
    'mmdet/guided_anchoring/ga-fast-rcnn': {'MG227'},  # its data=dict(...) is a leftover: no proposals are read
    'mmseg/cgnet/': {'MG214'},
    'mmseg/pidnet/': {'MG214'},
    'mmseg/san/': {'MG201', 'MG204', 'MG207'},  # 21 classes of VOC for a head of 20; weights of another data set
}


def sample(count: int):
    families = {}
    for where in shipped_configs():
        file = where[1]
        if '_base_' not in file.parts:
            families.setdefault(file.parent, where)
    chosen = list(families.values())
    return chosen[:: max(1, len(chosen) // count)]


@pytest.mark.slow
def test_a_sample_of_official_configs_without_exception_or_false_alarm():
    results = [check(where) for where in sample(60)]
    assert len(results) >= 50
    assert [result.error for result in results if result.error] == []
    read = [result for result in results if not result.unreadable]
    assert len(read) >= 0.9 * len(results)
    for result in read:
        allowed = next((codes for family, codes in TRUE.items() if result.file.startswith(family)), set())
        assert {finding[0] for finding in result.findings} <= allowed, result
