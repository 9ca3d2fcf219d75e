"""Commands see a config as the run will: with what ``guard=True`` of a LabelGuardHook puts in."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Dict, List, Set, Tuple

import pytest

pytest.importorskip('mmseg')
pytest.importorskip('mmdet')

from mmengine.config import Config
from this_stack import is_here

from mmguard.cli import main
from mmguard.compat.stack import find_config_file
from mmguard.config.changes import change_config
from mmguard.config.guards import guard_tree
from mmguard.config.parts import find_assigners, find_losses, find_pipelines, from_config
from mmguard.config.read import ReadConfig, read_config
from mmguard.findings.config_edits import map_labels
from mmguard.findings.engine import diagnose
from mmguard.findings.rule import Facts
from mmguard.properties.program import Program

ROOT = Path(__file__).parents[2]
PIDNET = 'mmseg::pidnet/pidnet-s_2xb6-120k_1024x1024-cityscapes.py'


def two_lines(tmp_path: Path, base: str, more: str = '', hook: str = '') -> Path:
    """A config with the lines that README recommends."""
    (readme,) = re.findall(r'```python\n(_base_.*?guard=True.*?)```', (ROOT / 'README.md').read_text(), re.S)
    file = tmp_path / 'two.py'
    text = readme.replace("'my_config.py'", repr(base)).replace('guard=True', f'guard=True{hook}')
    file.write_text(f'{text}\n{more}\n')
    return file


@pytest.mark.parametrize('style', ['README', 'demo'])
def test_what_we_recommend_passes_check(style: str, tmp_path: Path, capsys: Any) -> None:
    base = find_config_file(PIDNET)
    if style == 'demo':
        story = pytest.importorskip('mmguard.commands.demo.command')
        (tmp_path / 'stock.py').write_text(story.SMALL_CONFIG.format(stock=repr(base), iters=2, beyond=3))
        base = 'stock.py'
    file = two_lines(tmp_path, base)
    assert main(['check', str(file)]) == 0
    assert 'MG' not in capsys.readouterr().out
    stock = {finding.code for finding in diagnose(config=read_config(find_config_file(PIDNET)))}
    assert ('MG214' in stock) is is_here(('MG214',))


def kinds(config: ReadConfig) -> Tuple[Set[Tuple[str, str]], Dict[str, List[str]], List[Any]]:
    losses = {(loss.path, loss.name) for loss in find_losses(config)}
    pipelines = {
        steps[0].owner.path: [step.name for step in steps] for steps in find_pipelines(config) if steps[0].owner
    }
    return losses, pipelines, [one.get('ignore_iof_thr') for one in find_assigners(config)]


@pytest.mark.parametrize(
    'name',
    [
        PIDNET,
        'mmdet::retinanet/retinanet_r18_fpn_1x_coco.py',
        'mmdet::yolox/yolox_s_8xb8-300e_coco.py',
        'mmdet::soft_teacher/soft-teacher_faster-rcnn_r50-caffe_fpn_180k_semi-0.1-coco.py',
    ],
)
def test_it_is_what_apply_writes(name: str, tmp_path: Path) -> None:
    two = read_config(str(two_lines(tmp_path, find_config_file(name))))
    assert (
        kinds(two)
        == kinds(ReadConfig(guard_tree(two.written).tree))
        != kinds(ReadConfig({**two.written, 'custom_hooks': []}))
    )
    assert 'Guarded' not in repr(two.written['model'])


#: A mistake next to the two lines of PIDNet -> code, place, and value there once the first edit is applied.
MISTAKES = {
    'model = dict(decode_head=dict(loss_decode=[*_base_.model.decode_head.loss_decode[:1],'
    "dict(type='OhemCrossEntropy', thres=0.9, min_kept=9, class_weight=[1.0] * 18)]))": (
        'MG207',
        'model.decode_head.loss_decode[1].class_weight',
        [1.0] * 19,
    ),
    'train_pipeline = _base_.train_pipeline\ntrain_pipeline[3].update(ignore_index=254)\n'
    'train_dataloader = dict(dataset=dict(pipeline=train_pipeline))': (
        'MG208',
        'train_dataloader.dataset.pipeline[3].ignore_index',
        255,
    ),
}


@pytest.mark.parametrize('mistake', MISTAKES)
def test_places_and_edits_are_those_of_the_file(mistake: str, tmp_path: Path) -> None:
    code, place, value = MISTAKES[mistake]
    config = read_config(str(two_lines(tmp_path, find_config_file(PIDNET), mistake)))
    (finding,) = diagnose(config=config)
    assert (finding.code, finding.places) == (code, (place,))
    changed = change_config(config, finding.edits[0].config)
    assert diagnose(config=changed) == []
    expected = change_config(config, [(place, value)]).written
    assert changed.written == expected


def small(**hook: Any) -> Dict[str, Any]:
    head = dict(type='FCNHead', num_classes=7, loss_decode=dict(type='CrossEntropyLoss'))
    steps = [
        dict(type='LoadAnnotations'),
        dict(type='GenerateEdge'),
        dict(type='RandomFlip'),
        dict(type='PackSegInputs'),
    ]
    return dict(
        default_scope='mmseg',
        model=dict(type='EncoderDecoder', decode_head=head),
        train_dataloader=dict(dataset=dict(type='BaseSegDataset', pipeline=steps)),
        custom_imports=dict(imports=['mmguard']),
        custom_hooks=[dict(type='LabelGuardHook', guard=True, **hook)],
    )


def test_the_hook_passes_on_what_guards_take() -> None:
    config = ReadConfig(small(label_map={11: 255}, on_invalid='raise'))
    (steps,) = find_pipelines(config)
    early, late = (step.config for step in steps if step.name == 'GuardSegLabels')
    assert early == dict(type='GuardSegLabels', num_classes=7, on_invalid='raise', label_map={11: 255})
    assert late == dict(type='GuardSegLabels', num_classes=7, on_invalid='raise')  # a map applies once
    assert find_losses(config)[0].config == dict(type='GuardedCrossEntropyLoss', on_invalid='raise')
    space = from_config(config, 'train').pixels
    assert (space.label_map, space.place) == ({11: 255}, 'model.decode_head.num_classes')
    written = guard_tree(config.written).tree
    assert written['train_dataloader']['dataset']['pipeline'][1] == early


def test_the_label_that_the_hook_ignores_is_compared_with_the_head() -> None:
    config = ReadConfig(small(ignore_index=254))
    (finding,) = [one for one in diagnose(config=config) if one.code == 'MG208']
    assert finding.places == ('custom_hooks[0].ignore_index',)
    assert finding.edits[0].config == (('custom_hooks[0].ignore_index', 255),)


def test_a_map_to_no_class_is_an_error_of_the_hook() -> None:
    config = ReadConfig(small(label_map={11: 300}), 'config.py')
    (finding,) = [one for one in diagnose(config=config) if one.code == 'MG250']
    assert finding.places == ('custom_hooks[0]',)


def test_a_map_goes_into_the_hook_where_it_is_for_all_splits() -> None:
    config = ReadConfig(small(label_map={7: 255}))
    edit = map_labels(Facts(config=config), {11: 255}, splits=['train'])
    assert edit.config == (('custom_hooks[0].label_map', {7: 255, 11: 255}),)
    assert edit.steps == [
        'custom_hooks = [dict(_base_.custom_hooks[0], label_map={11: 255, 7: 255}), *_base_.custom_hooks[1:]]'
    ]
    other = dict(config.written, val_dataloader=config.written['train_dataloader'])
    only_train = map_labels(Facts(config=ReadConfig(other)), {11: 255}, splits=['train'])
    assert [path for path, _ in only_train.config] == ['train_dataloader.dataset.pipeline']


def test_instances_get_the_map_where_there_are_no_label_maps(tmp_path: Path) -> None:
    base = find_config_file('mmdet::retinanet/retinanet_r18_fpn_1x_coco.py')
    config = read_config(str(two_lines(tmp_path, base, hook=", label_map={90: 3}, on_invalid='drop'")))
    guards = [step.config for steps in find_pipelines(config) for step in steps if not step.written]
    assert {(guard['type'], guard['on_invalid'], guard['label_map'][90]) for guard in guards} == {
        ('GuardInstanceLabels', 'drop', 3)
    }


def test_data_build_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stock loss may unpickle a file of class weights when it is built."""
    tree, built = small(), []
    tree['model']['decode_head']['loss_decode'] = dict(type='LovaszLoss', class_weight='weights.pkl', reduction='none')
    monkeypatch.setattr('mmseg.models.losses.lovasz_loss.get_class_weight', built.append)
    assert find_losses(ReadConfig(tree, 'config.yaml'))[0].name == 'GuardedLovaszLoss'
    assert built == []
    assert find_losses(ReadConfig(tree, 'config.py'))[0].name == 'GuardedLovaszLoss'
    assert built == ['weights.pkl']


def test_a_program_is_built_with_them() -> None:
    program = Program(small(label_map={11: 255}))
    guards = [step for step in program.config.train_dataloader.dataset.pipeline if step['type'] == 'GuardSegLabels']
    assert [dict(guard).get('label_map') for guard in guards] == [{11: 255}, None]
    assert isinstance(program.config, Config)
