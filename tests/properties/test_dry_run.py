"""The command dry-run: outcomes, exit codes, what it leaves alone."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from importlib.util import find_spec

import numpy as np
import pytest
from PIL import Image
from programs import maps_root, tree_of, write_config
from this_stack import IS_ONEDL, is_here

from mmguard.cli import main
from mmguard.properties import first_batches, program
from mmguard.properties.result import broken, not_run
from mmguard.properties.suite import PROPERTIES, point_back, run_properties, run_property
from mmguard.properties.worker import Worker

pytestmark = pytest.mark.slow

FCN = 'mmseg::fcn/fcn_r50-d8_4xb2-40k_cityscapes-512x1024.py'
RETINANET = 'mmdet::retinanet/retinanet_r50_fpn_1x_coco.py'


def outcomes_of(report):
    return {one['name']: one['outcome'] for one in json.loads(report.read_text())['properties']}


def results_of(record, outcome):
    return [one for one in record.results if one.outcome == outcome]


@pytest.mark.parametrize('config', [FCN, RETINANET])
def test_official_configs_have_nothing_broken(config, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path, report = write_config(tmp_path, tree_of(config)), tmp_path / 'found.json'
    before = sorted(os.listdir(tmp_path))
    assert main(['dry-run', path, '--json', str(report), '--seconds', '500']) == 0
    found = outcomes_of(report)
    assert list(found) == list(PROPERTIES)
    notes = {name for name, outcome in found.items() if outcome == 'note'}
    assert notes - {'ignored-weigh-nothing'} == {'class-weights'} | ({'strides-match'} if config == FCN else set())
    assert set(found.values()) == {'ran', 'note'}
    assert sorted(os.listdir(tmp_path)) == sorted([*before, 'found.json'])


def test_what_check_finds_in_the_config_is_a_note(tmp_path):
    tree = tree_of(FCN)
    for split in ('train', 'val', 'test'):
        names = ['left arm', 'right arm', *map(str, range(17))]
        tree[f'{split}_dataloader']['dataset']['metainfo'] = dict(classes=names)
    path, report = write_config(tmp_path, tree), tmp_path / 'found.json'
    assert main(['dry-run', path, '--no-data', '--json', str(report)]) == 0
    *_, last = json.loads(report.read_text())['properties']
    assert (last['name'], last['outcome']) == ('check', 'note')
    assert [one['data'] for one in last['results']] == [{'code': 'MG234'}]


def test_a_broken_property_is_exit_code_1(tmp_path, capsys):
    tree = tree_of(FCN)
    tree['model']['decode_head']['num_classes'] = 12
    tree['model']['auxiliary_head'].update(type='SwappedHead', num_classes=12)
    tree['custom_imports'] = dict(imports=['planted'])
    path, report = write_config(tmp_path, tree), tmp_path / 'found.json'
    assert main(['dry-run', path, '--only', 'labels-reach-outputs', '--json', str(report)]) == 1
    assert outcomes_of(report) == {'labels-reach-outputs': 'broken'}
    assert PROPERTIES['labels-reach-outputs'].advice in capsys.readouterr().out
    (tested,) = json.loads(report.read_text())['properties']
    broken = [one['subject'] for one in tested['results'] if one['outcome'] == 'broken']
    assert broken == ['auxiliary_head.loss_decode']


@pytest.mark.parametrize(
    'config',
    [
        'mmseg::pidnet/pidnet-s_2xb6-120k_1024x1024-cityscapes.py',
        'mmseg::ddrnet/ddrnet_23-slim_in1k-pre_2xb6-120k_cityscapes-1024x1024.py',
    ],
)
def test_the_guarded_config_has_nothing_broken(config, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path, report = write_config(tmp_path, tree_of(config)), tmp_path / 'found.json'
    asked = ['--only', 'ignored-weigh-nothing', 'batch-variants', '--json', str(report), '--seconds', '500']
    fails = 'pidnet' in config and is_here(('MG214',))
    assert main(['dry-run', path, *asked]) == int(fails)
    whole = json.loads(report.read_text())['properties']
    assert any(one['outcome'] in ('broken', 'note') for record in whole for one in record['results'])
    assert main(['apply', path, '-o', 'guarded.py', '--no-verify']) == 0
    assert main(['dry-run', 'guarded.py', *asked]) == 0
    assert {one['advice'] for one in json.loads(report.read_text())['properties']} == {''}


@pytest.mark.parametrize(
    ('first', 'second', 'outcomes'),
    [
        (broken, broken, ['broken', 'note']),
        (broken, not_run, ['broken', 'not run']),
        (not_run, broken, ['not run', 'broken']),
    ],
)
def test_a_cause_is_broken_once_if_at_all(first, second, outcomes):
    known = {}
    found = [
        point_back(make('loss', data=dict(failure='IndexError')), name, known)
        for name, make in (('build', first), ('class-weights', second))
    ]
    assert [one.outcome for one in found] == outcomes
    assert point_back(broken('loss', data=dict(failure='KeyError')), 'class-weights', known).outcome == 'broken'


def test_a_config_with_functions_is_not_run(tmp_path):
    path, report = write_config(tmp_path, tree_of(RETINANET)), tmp_path / 'found.json'
    with open(path, 'a', encoding='utf-8') as file:
        file.write("\ntrain_dataloader['collate_fn'] = lambda batch: batch\n")
    assert main(['dry-run', path, '--only', 'class-weights', 'batch-variants', '--json', str(report)]) == 2
    assert outcomes_of(report) == {'class-weights': 'not run', 'batch-variants': 'not run'}


def test_missing_data_are_not_run_and_the_model_is_tested(tmp_path, capsys):
    tree = tree_of(RETINANET)
    for split in ('train', 'val', 'test'):
        tree[f'{split}_dataloader']['dataset']['data_root'] = 'nowhere'
    path, report = write_config(tmp_path, tree), tmp_path / 'found.json'
    asked = ['--only', 'build', 'first-batches', 'batch-variants', 'samples-survive', '--json', str(report)]
    assert main(['dry-run', path, *asked]) == 2
    assert outcomes_of(report) == {
        'build': 'not run',
        'first-batches': 'not run',
        'batch-variants': 'ran',
        'samples-survive': 'not run',
    }
    assert 'nowhere' in json.loads(report.read_text())['properties'][0]['results'][0]['evidence']
    assert main(['dry-run', path, '--no-data', '--only', 'batch-variants', '--json', str(report)]) == 0
    assert outcomes_of(report) == {'batch-variants': 'ran'}


def test_guards_are_part_of_the_program():
    """With the hook that guards, class weights and ignored pixels go together (F1)."""
    tree = tree_of(FCN)
    tree['model']['decode_head']['loss_decode'] = dict(type='CrossEntropyLoss', class_weight=[1.0] * 19)
    with Worker() as worker:
        unguarded = run_property(worker, tree, 'ignored-weigh-nothing', 200)
        assert bool(results_of(unguarded, 'broken')) != IS_ONEDL  # the fork looks up no weight of an ignored pixel
        tree['custom_imports'] = dict(imports=['mmguard'])
        tree['custom_hooks'] = [dict(type='LabelGuardHook', guard=True)]
        guarded = run_property(worker, tree, 'ignored-weigh-nothing', 200)
        assert (len(guarded.results), results_of(guarded, 'broken')) == (2, [])


@pytest.mark.parametrize('busy', [False, True])
def test_a_property_takes_no_time_of_the_others(busy):
    tree = tree_of(FCN)
    tree['custom_imports'] = dict(imports=['planted'])
    tree['val_evaluator'] = dict(type='Sleeps', busy=busy)
    with Worker() as worker:
        assert run_property(worker, tree, 'samples-survive', 200).outcome == 'ran'
        process = worker.ask(os.getpid, seconds=100).value
        began = time.monotonic()
        found = list(run_properties(worker, tree, ['full-marks', 'same-labels', 'batch-variants'], 120))
        assert time.monotonic() - began < 125
        assert [(one.name, one.outcome) for one in found] == [
            ('full-marks', 'not run'),
            ('same-labels', 'ran'),
            ('batch-variants', 'ran'),
        ]
        late = run_property(worker, tree, 'same-labels', 0)
        assert found[0].results[0].data == late.results[0].data == dict(reason='time')
        assert worker.ask(os.getpid, seconds=100).value == process


@pytest.mark.parametrize(
    ('name', 'package'), [('mmdet.LVISMetric', 'lvis'), ('mmdet.CocoPanopticMetric', 'panopticapi')]
)
def test_a_metric_whose_package_is_missing(name, package, worker):
    if find_spec(package):
        pytest.skip(f'{package} is installed')
    tree = tree_of(RETINANET)
    tree['val_evaluator'] = [dict(type=name, ann_file='any.json'), tree['val_evaluator']]
    found = {one.subject: one for one in run_property(worker, tree, 'full-marks', 200).results}
    assert found['CocoMetric'].outcome == 'ran'
    assert found[name.rpartition('.')[2]].outcome == 'not run'
    assert package in found[name.rpartition('.')[2]].evidence


@pytest.mark.parametrize(('classes', 'outcome'), [(1, 'broken'), (7, 'broken'), (19, 'ran')])
def test_a_metric_that_counts_fewer_classes_than_the_labels_have(classes, outcome, worker):
    tree = tree_of(FCN)
    for split in ('train', 'val'):
        metainfo = dict(classes=[f'class {n}' for n in range(classes if split == 'val' else 19)])
        tree[f'{split}_dataloader']['dataset'].update(type='BaseSegDataset', metainfo=metainfo)
    (found,) = run_property(worker, tree, 'full-marks', 200).results
    assert (found.outcome, found.subject) == (outcome, 'IoUMetric')
    assert outcome == 'ran' or min(found.data['labels']) >= classes


@pytest.mark.parametrize(('suffix', 'dtype'), [('.tif', np.uint8), ('.bmp', np.uint8), ('.png', np.uint16)])
@pytest.mark.parametrize('step', [None, 'ShiftLabels'])
def test_label_files_of_any_kind(suffix, dtype, step, worker, tmp_path):
    """The loader of the pipeline reads them."""
    tree = tree_of(FCN)
    shutil.copytree(maps_root(19, False), tmp_path, dirs_exist_ok=True)
    for path in (tmp_path / 'ann').iterdir():
        values = np.asarray(Image.open(path)).astype(dtype)
        path.unlink()
        Image.fromarray(values).save(path.with_suffix(suffix))
    tree['custom_imports'] = dict(imports=['planted'])
    for split in ('train', 'val'):
        tree[f'{split}_dataloader']['dataset'].update(data_root=str(tmp_path), seg_map_suffix=suffix)
    if step:
        tree['train_dataloader']['dataset']['pipeline'].insert(2, dict(type=step))
    found = {name: run_property(worker, tree, name, 200).outcome for name in ('same-labels', 'full-marks')}
    assert found == {'same-labels': 'broken' if step else 'ran', 'full-marks': 'ran'}


@pytest.fixture(scope='module')
def worker():
    with Worker() as worker:
        yield worker


@pytest.mark.parametrize(
    ('name', 'loss', 'outcome'),
    [
        ('class-weights', dict(type='ReversedWeights', class_weight=[1.0] * 19), 'broken'),
        ('class-weights', dict(type='WeightsUnused', class_weight=[1.0] * 19), 'broken'),
        ('class-weights', dict(type='CrossEntropyLoss', class_weight=[1.0] * 19), 'ran'),
        ('ignored-weigh-nothing', dict(type='OneHotLoss'), 'broken'),
        ('ignored-weigh-nothing', dict(type='CrossEntropyLoss', avg_non_ignore=False), 'note'),
        ('ignored-weigh-nothing', dict(type='CrossEntropyLoss', avg_non_ignore=True), 'ran'),
    ],
)
def test_losses_called_by_themselves(worker, name, loss, outcome):
    tree = tree_of(FCN)
    tree['model']['decode_head']['loss_decode'] = loss
    tree['model']['auxiliary_head'] = None
    tree['custom_imports'] = dict(imports=['planted'])
    assert run_property(worker, tree, name, 200).outcome == outcome


def test_a_preprocessor_that_refuses_the_images_trains_no_batch(worker):
    tree = tree_of(FCN)
    for node in (tree['data_preprocessor'], tree['model']['data_preprocessor']):
        node.update(mean=[0.0] * 6, std=[1.0] * 6)
    (found,) = run_property(worker, tree, 'first-batches', 200).results
    assert found.outcome == 'broken'
    assert '6' in re.findall(r'\d+', found.evidence)  # in the sizes that differ, or in the refusal of the onedl fork
    tree['train_dataloader']['dataset']['data_root'] = 'missing'  # then the number of channels is not known
    assert run_property(worker, tree, 'first-batches', 200).outcome == 'not run'


def test_parameters_that_no_loss_reads_are_a_note(worker):
    tree = tree_of(RETINANET)
    tree['model']['backbone'] = dict(type='MobileNetV2', out_indices=(2, 4, 6))
    tree['model']['neck']['in_channels'] = [32, 96, 320]
    tree['model']['neck']['start_level'] = 0
    notes = results_of(run_property(worker, tree, 'first-batches', 200), 'note')
    (found,) = [one for one in notes if one.subject == 'gradients']
    assert any(name.startswith('backbone.conv2.') for name in found.data['parameters'])


@pytest.mark.parametrize(
    ('config', 'outcome'),
    [
        ('mmdet::yolo/yolov3_d53_8xb8-320-273e_coco.py', 'ran'),  # boxes and scores of an anchor are one tensor
        ('mmdet::rtmdet/rtmdet_tiny_8xb32-300e_coco.py', 'note'),  # the target is the overlap of an untrained box
    ],
)
def test_the_scores_of_a_head_are_found(worker, config, outcome):
    found = run_property(worker, tree_of(config), 'labels-reach-outputs', 200).results
    assert {one.outcome for one in found} == {outcome}
    assert [one.subject for one in found] == ['bbox_head.loss_cls']
    assert all(list(one.data['outputs']) == ['0', '16', '32', '47', '63', '79'] for one in found)


@pytest.mark.parametrize(
    ('config', 'images'),  # BatchNorm of NAS-FPN needs two images at this size
    [(RETINANET, 1), ('mmdet::nas_fpn/retinanet_r50_nasfpn_crop640-50e_coco.py', 2)],
)
def test_a_slow_detector_is_tested_on_fewer_images_and_labels(config, images, monkeypatch):
    monkeypatch.setattr(program, '_SLOW', 0.0)
    monkeypatch.setattr(first_batches, 'STEP_SECONDS', 1e-6)
    names = ['first-batches', 'first-validation', 'labels-reach-outputs'][: 3 if images == 1 else 1]
    with Worker(forks=True) as worker:
        steps, *others = run_properties(worker, tree_of(config), names, 100)
    (step,) = [one for one in steps.results if one.subject == 'steps']
    assert (step.outcome, f' of {images} at 128x128 (scaled' in step.evidence) == ('ran', True)
    found = [one.data.get('images', one.data.get('outputs')) for record in others for one in record.results]
    assert found == [1, {'0': 0, '79': 79}][: len(others)]


def test_strides_of_another_backbone_are_broken(worker):
    tree = tree_of(RETINANET)
    tree['model']['bbox_head']['anchor_generator']['strides'] = [4, 8, 16, 32, 64]
    found = run_property(worker, tree, 'strides-match', 200).results[0]
    assert found.outcome == 'broken'
    assert found.subject == 'bbox_head'
    assert found.evidence.startswith('level 0 has stride 4, but its feature map is 1/8 of the image')


def test_a_data_set_without_samples_is_broken(worker):
    tree = tree_of(RETINANET)
    tree['train_dataloader']['dataset']['metainfo'] = dict(classes=('no such name',))
    found = list(run_properties(worker, tree, ['build', 'first-batches', 'samples-survive'], 200))
    assert [(one.name, str(one.results[0])[:10]) for one in found if one.outcome == 'broken'] == [
        ('build', 'train data')
    ]


def test_labels_without_an_output_are_broken_once(worker):
    tree = tree_of(FCN)
    for head in ('decode_head', 'auxiliary_head'):
        tree['model'][head]['num_classes'] = 12
    found = list(run_properties(worker, tree, ['first-batches', 'batch-variants'], 200))
    assert [(one.name, one.outcome) for one in found] == [('first-batches', 'broken'), ('batch-variants', 'note')]
    assert set() < set(found[0].results[0].data['labels']) <= set(range(12, 19))


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
