"""The command dry-run: outcomes, exit codes, what it leaves alone."""

from __future__ import annotations

import json
import os

import pytest
from programs import tree_of
from this_stack import IS_ONEDL

from mmguard.cli import main
from mmguard.properties.suite import OVERFIT, PROPERTIES, run_property
from mmguard.properties.worker import Worker

pytestmark = pytest.mark.slow

FCN = 'mmseg::fcn/fcn_r50-d8_4xb2-40k_cityscapes-512x1024.py'
RETINANET = 'mmdet::retinanet/retinanet_r50_fpn_1x_coco.py'


def write_config(folder, tree):
    path = folder / 'mine.py'
    path.write_text('\n'.join(f'{key} = {value!r}' for key, value in tree.items()))
    return str(path)


def outcomes_of(report):
    return {one['name']: one['outcome'] for one in json.loads(report.read_text())['properties']}


@pytest.mark.parametrize('config', [FCN, RETINANET])
def test_official_configs_have_nothing_broken(config, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path, report = write_config(tmp_path, tree_of(config)), tmp_path / 'found.json'
    before = sorted(os.listdir(tmp_path))
    assert main(['dry-run', path, '--json', str(report), '--seconds', '500']) == 0
    found = outcomes_of(report)
    assert [*found, OVERFIT] == list(PROPERTIES)
    pixels_only = {'ignored-weigh-nothing'} if config == RETINANET else set()
    assert {name for name, outcome in found.items() if outcome == 'not tested'} == {'class-weights', *pixels_only}
    assert 'broken' not in found.values()
    assert sorted(os.listdir(tmp_path)) == sorted([*before, 'found.json'])


def test_a_broken_property_is_exit_code_1(tmp_path, capsys):
    tree = tree_of(FCN)
    tree['model']['decode_head']['num_classes'] = 12
    tree['model']['auxiliary_head'].update(type='SwappedHead', num_classes=12)
    tree['custom_imports'] = dict(imports=['planted'])
    path, report, page = write_config(tmp_path, tree), tmp_path / 'found.json', tmp_path / 'found.html'
    words = ['dry-run', path, '--only', 'labels-reach-outputs', '--json', str(report), '--html', str(page)]
    assert main(words) == 1
    assert outcomes_of(report) == {'labels-reach-outputs': 'broken'}
    (tested,) = json.loads(report.read_text())['properties']
    broken = [one['subject'] for one in tested['results'] if one['outcome'] == 'broken']
    assert broken == ['class names', 'auxiliary_head[0], aux.loss_ce']
    assert page.read_text().count('<img ') == 1


def test_a_config_with_functions_is_not_tested(tmp_path):
    path, report = write_config(tmp_path, tree_of(RETINANET)), tmp_path / 'found.json'
    with open(path, 'a', encoding='utf-8') as file:
        file.write("\ntrain_dataloader['collate_fn'] = lambda batch: batch\n")
    assert main(['dry-run', path, '--only', 'class-weights', 'empty-batch', '--json', str(report)]) == 0
    assert outcomes_of(report) == {'class-weights': 'not tested', 'empty-batch': 'not tested'}


def test_without_data_the_model_is_tested_all_the_same(tmp_path):
    tree = tree_of(RETINANET)
    for split in ('train', 'val', 'test'):
        tree[f'{split}_dataloader']['dataset']['data_root'] = '/nowhere'
    with Worker() as worker:
        found = {name: run_property(worker, tree, name, 200).outcome for name in ('empty-batch', 'samples-survive')}
    assert found == {'empty-batch': 'holds', 'samples-survive': 'not tested'}


def test_guards_are_part_of_the_program():
    """With the hook that guards, class weights and ignored pixels go together (F1)."""
    tree = tree_of(FCN)
    tree['model']['decode_head']['loss_decode'] = dict(type='CrossEntropyLoss', class_weight=[1.0] * 19)
    with Worker() as worker:
        # The fork looks up no weight of an ignored pixel.
        assert run_property(worker, tree, 'ignored-weigh-nothing', 200).outcome == ('holds' if IS_ONEDL else 'broken')
        tree['custom_imports'] = dict(imports=['mmguard'])
        tree['custom_hooks'] = [dict(type='LabelGuardHook', guard=True)]
        assert run_property(worker, tree, 'ignored-weigh-nothing', 200).outcome == 'holds'


@pytest.fixture(scope='module')
def worker():
    with Worker() as worker:
        yield worker


@pytest.mark.parametrize(
    ('name', 'loss', 'outcome'),
    [
        ('class-weights', dict(type='ReversedWeights', class_weight=[1.0] * 19), 'broken'),
        ('class-weights', dict(type='WeightsUnused', class_weight=[1.0] * 19), 'broken'),
        ('class-weights', dict(type='CrossEntropyLoss', class_weight=[1.0] * 19), 'holds'),
        ('averages', dict(type='AverageOfAll'), 'broken'),
        ('averages', dict(type='AverageOfAll', avg_non_ignore=False), 'setting'),
        ('averages', dict(type='CrossEntropyLoss', avg_non_ignore=True), 'holds'),
    ],
)
def test_losses_called_by_themselves(worker, name, loss, outcome):
    tree = tree_of(FCN)
    tree['model']['decode_head']['loss_decode'] = loss
    tree['model']['auxiliary_head'] = None
    tree['custom_imports'] = dict(imports=['planted'])
    assert run_property(worker, tree, name, 200).outcome == outcome


@pytest.mark.parametrize('words', [['--only', 'no-such'], ['--seconds', '0'], ['--samples', 'many']])
def test_misuse(words):
    with pytest.raises(SystemExit, match='2'):
        main(['dry-run', 'mine.py', *words])


def test_what_cannot_be_built_is_exit_code_2(tmp_path, capsys):
    old = tmp_path / 'old.py'
    old.write_text("data = dict(samples_per_gpu=2, train=dict(type='A'))\nmodel = dict(type='B')\n")
    (tmp_path / 'mine.json').write_text(json.dumps(dict(model=dict(type='A'))))
    for name in ('old.py', 'mine.json', 'missing.py'):
        assert main(['dry-run', str(tmp_path / name)]) == 2
