"""A mistake in mmguard's own lines is named by `mmguard check`, and by the run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import List, NamedTuple, Optional

import pytest
from mmengine.config import Config
from small_det_data import make_coco
from small_det_runs import shrink
from small_runs import LOAD, PACK, Run, make_cityscapes, tiny_config
from test_two_lines import named_apart

from mmguard.commands.apply.guarded import build_tree
from mmguard.compat.stack import find_config_file
from mmguard.config.changes import change_config
from mmguard.config.guards import guard_tree
from mmguard.config.read import ReadConfig, read_config
from mmguard.findings.engine import diagnose, select_rules
from mmguard.findings.finding import Finding

OWN = ('MG225', 'MG250', 'MG251', 'MG252', 'MG253', 'MG255')
SHIPPED = sorted(Path(__file__).parents[2].glob('configs/*/*_guarded.py'))
IMPORT = "custom_imports = dict(imports=['mmguard'], allow_failed_imports=False)\n"
HOOK = "custom_hooks = [dict(type='LabelGuardHook')]\n"
BOTH = IMPORT + HOOK
PIPELINE = 'train_dataloader.dataset.pipeline'
DECODE, CLS, BBOX = 'model.decode_head.loss_decode', 'model.bbox_head.loss_cls', 'model.bbox_head.loss_bbox'


def pipeline(steps: str) -> str:
    return f'train_dataloader = dict(dataset=dict(pipeline=[{steps}]))\n'


def at(path: str, value: str) -> str:
    """A line that writes a value at a path."""
    for key in reversed(path.split('.')[1:]):
        value = f'dict({key}={value})'
    return f'{path.split(".")[0]} = {value}\n'


SEG = pipeline("*_base_.train_pipeline, dict(type='GuardSegLabels', num_classes=19)")
DET = pipeline("*_base_.train_pipeline, dict(type='GuardInstanceLabels', num_classes=80, on_invalid='drop')")


GUARDED = "dict(type='GuardedCrossEntropyLoss')"


class Mistake(NamedTuple):
    """A config with one mistake.

    Attributes:
        base (str): Its base: ``'seg'`` or ``'det'``.
        text (str): What it adds.
        code (str): Finding of ``check``; empty if the config is right.
        place (str): Place that the finding names.
        run (str): A part of the run's error, or of its log if nothing is raised.
        raises (type, optional): Error of the run.
        edits (bool): True if an edit is offered.
    """

    base: str
    text: str
    code: str = ''
    place: str = ''
    run: str = ''
    raises: Optional[type] = None
    edits: bool = True


def loss(path: str, value: str, run: str, raises: type, edits: bool = False, place: str = '') -> Mistake:
    base, guard = ('seg', SEG) if 'decode' in path else ('det', DET)
    return Mistake(base, BOTH + guard + at(path, value), 'MG250', path + place, run, raises, edits)


def mine(
    base: str, text: str, place: str, run: str, raises: Optional[type] = None, edits: bool = True, code: str = 'MG250'
) -> Mistake:
    return Mistake(base, text, code, place, run, raises, edits)


def last(arguments: str, guard: str = 'GuardSegLabels') -> str:
    """A guard that follows the pipeline."""
    return BOTH + pipeline(f"*_base_.train_pipeline, dict(type='{guard}', {arguments})")


def hooks(arguments: str) -> str:
    return f'custom_hooks = [dict(type={arguments})]\n'


def imports(module: str) -> str:
    return f'custom_imports = dict(imports=[{module!r}], allow_failed_imports=False)\n'


MISTAKES = {
    'a misspelt loss': loss(DECODE, "dict(type='GuardCrossEntropyLoss')", 'GuardCross', KeyError, True, '.type'),
    'an unknown argument': loss(
        DECODE, "dict(type='GuardedCrossEntropyLoss', ignore_idx=255)", 'ignore_idx', TypeError
    ),
    'GuardedLoss around what has a guard of its own': loss(
        DECODE, "dict(_delete_=True, type='GuardedLoss', loss=dict(type='CrossEntropyLoss'))", 'GuardedCross', TypeError
    ),
    'GuardedLoss without a loss': loss(DECODE, "dict(_delete_=True, type='GuardedLoss')", "'loss'", TypeError),
    'arguments of the base': loss(
        DECODE, "dict(type='GuardedLoss', loss=dict(type='FocalLoss'))", '_delete_=True', AssertionError
    ),
    'a misspelt loss inside': loss(
        DECODE, "dict(_delete_=True, type='GuardedLoss', loss=dict(type='FocalLos'))", 'FocalLos ', KeyError
    ),
    'a misspelt import': mine('seg', HOOK + SEG + imports('mmgaurd'), 'custom_imports.imports', 'mmgaurd', ImportError),
    'a misspelt hook': mine(
        'seg', IMPORT + SEG + hooks("'LabelGaurdHook'"), 'custom_hooks[0].type', 'LabelGaurdHook', KeyError
    ),
    'an unknown argument of the hook': mine(
        'seg', IMPORT + SEG + hooks("'LabelGuardHook', intervall=5"), 'custom_hooks[0]', 'intervall', TypeError, False
    ),
    'a share in percent': mine(
        'det',
        IMPORT + DET + hooks("'LabelGuardHook', max_skipped_ratio=5"),
        *('custom_hooks[0]', 'max_skipped_ratio', ValueError, False),
    ),
    'a guard without num_classes': mine('seg', last(''), f'{PIPELINE}[3]', 'num_classes', TypeError, False),
    'an unknown on_invalid': mine(
        'seg', last("num_classes=19, on_invalid='skip'"), f'{PIPELINE}[3]', 'skip', ValueError, False
    ),
    'the guard of another task': mine(
        'seg', last('num_classes=19', 'GuardInstanceLabels'), f'{PIPELINE}[3].type', 'MG251', code='MG251'
    ),
    'another number of classes': mine(
        'seg', last('num_classes=20'), f'{PIPELINE}[3].num_classes', 'MG225', code='MG225'
    ),
    'a guard before the labels': mine(
        'seg',
        BOTH + pipeline("dict(type='GuardSegLabels', num_classes=19), *_base_.train_pipeline"),
        *(f'{PIPELINE}[0]', 'MG251'),
        code='MG251',
    ),
    'the hook alone': mine('seg', BOTH, 'custom_hooks[0]', 'guard: nothing to report', code='MG252'),
    'hooks of the base replaced': mine('ema', BOTH + DET, 'custom_hooks', 'MG253', code='MG253'),
    'a guard of pixels in detection': mine('det', last('num_classes=80'), f'{PIPELINE}[4].type', 'MG251', code='MG251'),
    'a misspelt guard': mine(
        'det', last('num_classes=80', 'GuardInstanceLabel'), *(f'{PIPELINE}[4].type', 'GuardInstanceLabel', KeyError)
    ),
    'a loss of another framework': loss(
        CLS, "dict(type='GuardedLovaszLoss')", 'GuardedLovaszLoss', KeyError, place='.type'
    ),
    'a loss of boxes': loss(BBOX, "dict(type='GuardedL1Loss')", 'GuardedL1Loss', TypeError),
    'a nested use_sigmoid': mine(
        'det',
        BOTH + DET + at(CLS, "dict(_delete_=True, type='GuardedLoss', loss=dict(type='FocalLoss', use_sigmoid=True))"),
        *(CLS, 'use_sigmoid', ValueError, False),
    ),
}

UNHEARD = {
    'no import': mine('seg', HOOK + SEG, 'custom_imports.imports', 'LabelGuardHook', KeyError),
    'a transform without the hook': mine('seg', IMPORT + SEG, 'custom_hooks', 'GuardSegLabels', code='MG252'),
    'a loss without the hook': mine(
        'seg', IMPORT + at(DECODE, GUARDED), 'custom_hooks', 'GuardedCrossEntropyLoss', code='MG252'
    ),
    'a hook of ours that is replaced': mine(
        'det', IMPORT + DET + hooks("'EMAHook'"), 'custom_hooks', 'GuardInstanceLabels', code='MG252'
    ),
}

RIGHT = {
    'a named loss': Mistake('seg', BOTH + SEG + at(DECODE, "dict(_delete_=True, type='GuardedFocalLoss')")),
    'an import as a text': Mistake('seg', HOOK + SEG + "custom_imports = dict(imports='mmguard')\n"),
    'a loss of another scope': Mistake('seg', BOTH + SEG + at(DECODE, "dict(type='mmdet.GuardedCrossEntropyLoss')")),
    'keys that are texts': Mistake(
        'seg',
        BOTH + pipeline("*_base_.train_pipeline, dict(type='GuardSegLabels', num_classes=19, label_map={'11': 255})"),
    ),
    'losses alone': Mistake('seg', BOTH + at(DECODE, GUARDED)),
    'two lines': Mistake('seg', IMPORT + "custom_hooks = [dict(type='LabelGuardHook', guard=True)]\n"),
    'added hooks': Mistake(
        'ema', IMPORT + DET + "custom_hooks = [*_base_.custom_hooks, dict(type='LabelGuardHook')]\n"
    ),
}


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Base configs without mmguard, and their data sets."""
    folder = tmp_path_factory.mktemp('own_lines')
    seg = tiny_config(
        make_cityscapes(str(folder / 'cityscapes'), planted={}), str(folder), iters=1, pipeline=[*LOAD, PACK]
    )
    seg.model.decode_head.loss_decode = dict(type='CrossEntropyLoss', use_sigmoid=False)
    seg.custom_hooks = []
    seg.train_pipeline = seg.train_dataloader.dataset.pipeline
    stock = Config.fromfile(find_config_file('mmdet::retinanet/retinanet_r50_fpn_1x_coco.py'))
    det = shrink(stock, make_coco(str(folder / 'coco'), 80, 80, faults=()), str(folder), data_classes=80)
    det.train_pipeline = det.train_dataloader.dataset.pipeline
    for name, config in (('seg', seg), ('det', det)):
        (folder / f'{name}.py').write_text(''.join(f'{key} = {value!r}\n' for key, value in config.to_dict().items()))
    (folder / 'ema.py').write_text("_base_ = 'det.py'\ncustom_hooks = [dict(type='EMAHook')]\n")
    return folder


def written(folder: Path, mistake: Mistake) -> str:
    (folder / 'mine.py').write_text(f"_base_ = '{mistake.base}.py'\n{mistake.text}")
    return str(folder / 'mine.py')


def own_findings(config: ReadConfig) -> List[Finding]:
    return [found for found in diagnose(config=config, rules=select_rules()) if found.code in OWN]


@pytest.mark.parametrize('name', [*MISTAKES, *UNHEARD, *RIGHT])
def test_check_names_it(folder: Path, name: str) -> None:
    mistake = {**MISTAKES, **UNHEARD, **RIGHT}[name]
    config = read_config(written(folder, mistake))
    found = own_findings(config)
    assert [(one.code, one.places) for one in found] == [(mistake.code, (mistake.place,))] * bool(mistake.code)
    for one in found:
        quotes = re.findall(r"(?<!\w)'|'(?!\w)", one.title)  # not apostrophes
        assert len(quotes) % 2 == 0, one.title
        assert bool(one.edits) is mistake.edits
        for edit in one.edits:
            assert own_findings(change_config(config, edit.config)) == []


#: A misspelt loss -> the one that is offered, and True if no other one can be meant.
SPELLINGS = {
    'GuardedCrossEntropy': ('GuardedCrossEntropyLoss', False),
    'GuardedFocal': ('GuardedFocalLoss', False),
    'GuardedFocalloss': ('GuardedFocalLoss', True),
    'GaurdedFocalLoss': ('GuardedFocalLoss', True),
    'GuardedOhemCrossEntropyLoss': ('GuardedOhemCrossEntropy', False),
}


@pytest.mark.parametrize('name', SPELLINGS)
def test_another_loss_is_only_a_question(folder: Path, name: str) -> None:
    text = BOTH + SEG + at(DECODE, f'dict(_delete_=True, type={name!r})')
    (found,) = own_findings(read_config(written(folder, Mistake('seg', text))))
    (edit,) = found.edits
    meant, is_sure = SPELLINGS[name]
    assert edit.config == ((f'{DECODE}.type', meant),)
    assert bool(edit.question) is not is_sure


def test_the_arguments_of_two_hooks_are_merged(folder: Path) -> None:
    base = "dict(type='LabelGuardHook', max_skipped_ratio=0.5)"
    for second, question in (('guard=True', False), ('max_skipped_ratio=0.1, guard=True', True)):
        text = f"{IMPORT}custom_hooks = [{base}, dict(type='EMAHook'), dict(type='LabelGuardHook', {second})]\n"
        (found,) = own_findings(read_config(written(folder, Mistake('seg', text))))
        (edit,) = found.edits
        ((path, hooks),) = edit.config
        assert (found.code, path, [hook['type'] for hook in hooks]) == (
            'MG255',
            'custom_hooks',
            ['LabelGuardHook', 'EMAHook'],
        )
        assert hooks[0] == dict(type='LabelGuardHook', max_skipped_ratio=0.1 if question else 0.5, guard=True)
        assert bool(edit.question) is question


def test_the_hook_of_default_hooks_is_the_first(folder: Path) -> None:
    text = IMPORT + "default_hooks = dict(guard=dict(type='LabelGuardHook'))\n" + hooks("'LabelGuardHook', guard=True")
    (found,) = own_findings(read_config(written(folder, Mistake('seg', text))))
    assert (found.code, found.places) == ('MG255', ('custom_hooks[0]',))
    assert found.edits[0].config == (
        ('custom_hooks', []),
        ('default_hooks.guard', dict(type='LabelGuardHook', guard=True)),
    )


@pytest.mark.parametrize('with_map', [True, False])
def test_check_and_the_guard_agree_about_void(folder: Path, with_map: bool) -> None:
    """The guard makes 255 of every unlabeled pixel, so it is the head that ignores another label."""
    label_map = 'label_map={11: 255}' if with_map else ''
    text = last(f'num_classes=19, {label_map}') + at('model.decode_head.ignore_index', '19')
    (found,) = [
        one for one in diagnose(config=read_config(written(folder, Mistake('seg', text)))) if one.code == 'MG208'
    ]
    assert found.places == ('model.decode_head.ignore_index',)
    assert found.edits[0].config == (('model.decode_head.ignore_index', 255),)


def run(file: str, work_dir: Path) -> Run:
    return Run(named_apart(Config.fromfile(file), work_dir)).train()


def test_weights_that_the_head_makes_a_list_of_are_right(tmp_path: Path) -> None:
    base = find_config_file('mmdet::detr/detr_r50_8xb2-150e_coco.py')
    (tmp_path / 'mine.py').write_text(f'_base_ = {base!r}\n{BOTH}{at(CLS, GUARDED)}')
    assert own_findings(read_config(str(tmp_path / 'mine.py'))) == []


@pytest.mark.parametrize('file', SHIPPED, ids=lambda file: file.stem)
def test_the_configs_that_we_ship_are_right(file: Path) -> None:
    assert own_findings(read_config(str(file))) == []


def test_a_pipeline_that_is_switched_to_holds_no_hooks() -> None:
    guarded = guard_tree(
        build_tree(Config.fromfile(find_config_file('mmdet::rtmdet/rtmdet_s_8xb32-300e_coco.py')))
    ).tree
    assert own_findings(ReadConfig(guarded)) == []


@pytest.mark.slow
@pytest.mark.parametrize('name', [*MISTAKES, *RIGHT])
def test_the_run_names_it(folder: Path, tmp_path: Path, name: str) -> None:
    mistake = {**MISTAKES, **RIGHT}[name]
    file = written(folder, mistake)
    if mistake.raises is not None:
        with pytest.raises(mistake.raises) as caught:
            run(file, tmp_path)
        assert mistake.run in str(caught.value)
        assert 'Base' not in str(caught.value)
        return
    log = run(file, tmp_path).log
    assert mistake.run in log
    assert bool(mistake.code) or not any(code in log for code in OWN)


@pytest.mark.slow
@pytest.mark.parametrize('name', UNHEARD)
def test_the_run_names_what_nobody_hears(folder: Path, tmp_path: Path, name: str) -> None:
    """In a process of its own: mmguard is imported here, and its hooks may still live."""
    code = (
        'import sys; from mmengine.config import Config; from mmengine.runner import Runner\n'
        'config = Config.fromfile(sys.argv[1]); config.work_dir = sys.argv[2]; Runner.from_cfg(config).train()'
    )
    command = [sys.executable, '-c', code, written(folder, UNHEARD[name]), str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (ended.returncode == 0) is (UNHEARD[name].raises is None)
    lines = [line for line in (ended.stdout + ended.stderr).splitlines() if UNHEARD[name].run in line]
    assert len([line for line in lines if 'WARNING' in line or 'Error' in line]) == 1
