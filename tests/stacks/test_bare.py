"""With torch and numpy alone, in any environment: all else that mmguard may use is kept from a child process."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, List, Sequence, Tuple

import coco_cases
import pytest
from coco_cases import ann, write
from needs import find_test_files, read_needs, read_stack
from put_file import put
from voc_cases import obj, xml
from warm import run_beside_torch

import mmguard
from mmguard.compat.stack import INSTALL

ROOT = Path(mmguard.__file__).parent.parent
ABSENT = (
    'mmengine', 'mmcv', 'mmseg', 'mmdet', 'nnunetv2', 'nibabel', 'SimpleITK', 'tifffile', 'PIL', 'rich', 'cv2',
    'matplotlib', 'yaml', 'msgspec', 'jinja2', 'distributed', 'pandas', 'scipy', 'torchvision', 'transformers',
    'lightning', 'pytorch_lightning', 'rfdetr',
)  # fmt: skip


def alone(code: str, *arguments: str, present: Tuple[str, ...] = ()) -> Any:
    absent = [name for name in ABSENT if name not in present]
    before = f'import sys\nsys.modules.update(dict.fromkeys({absent!r}))\n'
    env = {**os.environ, 'OMP_NUM_THREADS': '1', 'PYTHONPATH': str(ROOT), 'COLUMNS': '80'}
    return run_beside_torch(before + code, *arguments, environment=env)


def command(*words: str, present: Tuple[str, ...] = ()) -> Any:
    done = alone('from mmguard.cli import main\nsys.exit(main())', *words, present=present)
    assert 'Traceback' not in done.stderr, done.stderr
    return done


#: Prints how each file with tests was collected.
COLLECT = """
import json, pytest

outcomes = {}

class Reports:
    def pytest_collectreport(self, report):
        if report.result or not report.passed:
            outcomes[report.nodeid] = report.outcome

code = pytest.main(sys.argv[1:], plugins=[Reports()])
print(json.dumps(outcomes))
sys.exit(code)
"""


@pytest.fixture
def coco(tmp_path: Path) -> str:
    """Three annotations of a good category, one of none, one box without area."""
    boxes: List[Any] = [[1, 1, 5, 5], [2, 2, 6, 6], [3, 3, 7, 7], [4, 4, 8, 8], [5, 5, 0, 0]]
    categories = [7, 7, 7, 99, 7]
    found = [ann(n, 0, category, box, area=25) for n, (box, category) in enumerate(zip(boxes, categories))]
    return write(tmp_path, coco_cases.coco(found, 1, {7: 'ship'}, size=(32, 32)), 'ships.json')


def test_the_parts_without_a_framework_import_and_work() -> None:
    done = alone("""
import torch, mmguard, mmguard.findings, mmguard.distributed, mmguard.functional, mmguard.labels.rules, mmguard.nn
import mmguard.log.run_log, mmguard.labels.instances, mmguard.commands.report, mmguard.scanning.run
from mmguard.functional import softmax_cross_entropy
logits = torch.zeros(3, 2, requires_grad=True)
loss, counts = softmax_cross_entropy(logits, torch.tensor([0, 19, 1]))
loss.backward()
assert counts.tolist() == [3, 1, 0] and logits.grad[1].abs().sum() == 0
assert not hasattr(mmguard, 'GuardedLoss') and mmguard.Tally
""")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize('loss', ['CrossEntropyLoss', 'OhemCrossEntropy', 'GuardedFocalLoss'])
def test_a_config_has_findings_and_edits_without_mmengine(loss: str) -> None:
    """As the config in a log from elsewhere."""
    done = alone(f"""
from mmguard.config.read import ReadConfig
from mmguard.findings import diagnose
loss = dict(type={loss!r}, class_weight=[1.0, 2.0])
head = dict(type='FCNHead', num_classes=3, loss_decode=loss)
found = diagnose(config=ReadConfig(dict(default_scope='mmseg', model=dict(type='EncoderDecoder', decode_head=head))))
print(sorted(finding.code for finding in found))
""")
    assert 'MG207' in done.stdout, done.stderr
    assert 'MG250' not in done.stdout


def test_a_coco_file_is_scanned_without_pillow(coco: str) -> None:
    present = ('msgspec', 'rich')
    for package in present:
        pytest.importorskip(package)
    done = command('scan', coco, present=present)
    assert done.returncode == 1, done.stderr
    assert 'ships.json' in done.stdout
    assert '\x1b[' not in done.stdout
    findings = json.loads(command('scan', coco, '--json', '-', present=present).stdout)['datasets'][0]['findings']
    assert len(findings) >= 2
    assert all(finding['code'] in done.stdout for finding in findings)


def test_a_voc_folder_is_scanned(tmp_path: Path) -> None:
    for name, right in (('a', 8), ('b', 1)):
        put(tmp_path / f'{name}.xml', xml(obj('ship', (1, 1, right, 9))))
    pytest.importorskip('rich')
    done = command('scan', str(tmp_path), '--json', '-', present=('rich',))
    (found,) = json.loads(done.stdout)['datasets']
    assert done.returncode == 1
    assert any('b.xml' in file for finding in found['findings'] for file in finding['files'])


def check_that_it_says(words: Sequence[str], package: str, present: Tuple[str, ...] = ()) -> None:
    done = command(*words, present=present)
    assert (done.returncode, done.stdout) == (2, '')
    assert done.stderr.count('\n') == 1
    assert done.stderr.startswith(f'mmguard {words[0]}: ')
    assert package in done.stderr


def test_what_needs_a_package_says_which_and_how_to_get_it(tmp_path: Path, coco: str) -> None:
    maps = tmp_path / 'maps'
    put(maps / 'a.png', b'\x89PNG')
    for words, package in (
        (('scan', str(maps)), 'pip install pillow rich msgspec jinja2'),
        (('scan', coco), 'pip install pillow rich msgspec jinja2'),
        (('scan', coco, '--html', str(tmp_path / 'page.html')), 'pip install pillow rich msgspec jinja2'),
        (('fix', str(maps), '--out', str(tmp_path / 'out')), 'pip install pillow rich msgspec jinja2'),
        (('report', str(maps)), 'pip install pillow rich msgspec jinja2'),
    ):
        check_that_it_says(words, package)


@pytest.mark.parametrize(
    ('call', 'package'),
    [
        ("scan('{coco}')", 'rich'),
        ("scan('{maps}', num_classes=3)", 'rich'),
        ("check('{config}')", 'mmengine'),
        ("dry_run('{config}')", 'rich'),
        ("explain('IndexError: Target 19 is out of bounds.\\n\\n').to_frame()", 'pandas'),
    ],
)
def test_a_function_names_the_package_that_it_lacks(call: str, package: str, tmp_path: Path, coco: str) -> None:
    maps = put(tmp_path / 'maps/a.png', b'\x89PNG').parent
    config = put(tmp_path / 'config.py', "model = dict(type='EncoderDecoder')\n")
    call = call.format(coco=coco, maps=maps, config=config)
    done = alone(f'import mmguard\ntry:\n    mmguard.{call}\nexcept ImportError as error:\n    print(error)')
    assert done.stderr == ''
    assert done.stdout.startswith(f'mmguard.{"Diagnosis.to_frame" if package == "pandas" else call.partition("(")[0]} ')
    assert f'needs {package}, which is not installed: pip install ' in done.stdout


def test_what_reads_a_config_says_that_it_needs_mmengine(tmp_path: Path) -> None:
    pytest.importorskip('rich')
    config = put(tmp_path / 'config.py', "model = dict(type='EncoderDecoder')\n")
    for words in (('scan',), ('check',), ('apply', '-o', str(tmp_path / 'out.py')), ('trace',)):
        for package in ('pip install mmengine', 'pip install onedl-mmengine'):
            check_that_it_says((*words, str(config)), package, present=('rich',))


def test_the_demo_says_how_to_install_what_it_needs(tmp_path: Path) -> None:
    done = command('demo', '--out', str(tmp_path / 'demo'))
    assert (done.returncode, done.stdout) == (2, '')
    for command_of in INSTALL.values():  # all at once, not one after each installation
        assert ' && '.join(command_of[module] for module in ('mmengine', 'mmcv', 'mmseg')) in done.stderr
    assert not (tmp_path / 'demo').exists()


def test_the_data_of_the_demo_need_no_framework(tmp_path: Path) -> None:
    present = ('cv2', 'rich', 'PIL', 'jinja2')
    for package in present:
        pytest.importorskip(package)
    done = command('demo', '--data', '--out', str(tmp_path / 'demo'), present=present)
    assert (done.returncode, done.stderr) == (0, '')
    (said,) = re.findall(r'mmguard scan (.*)', done.stdout)
    words = [str(tmp_path / 'demo' / 'cityscapes') if word == 'cityscapes' else word for word in said.split()]
    assert command('scan', *words, present=present).returncode == 1


def test_help_explain_and_env_need_nothing(tmp_path: Path) -> None:
    assert command('--help').returncode == 0
    assert 'MG102' in command('explain').stdout
    assert 'num_classes' in command('explain', 'MG201').stdout
    done = command('env', '--no-import')
    assert 'torch' in done.stdout
    log = tmp_path / 'train.log'
    raised = 'File "a.py", line 1, in <module>\nIndexError: Target 19 is out of bounds.'
    log.write_text(f'Traceback (most recent call last):\n  {raised}\n')
    done = command('explain', str(log), '--json', str(tmp_path / 'explained.json'))
    assert (done.returncode, done.stderr) == (1, '')
    assert json.loads((tmp_path / 'explained.json').read_text())['error']['code'] in done.stdout


def test_a_package_that_a_config_of_its_own_needs_is_not_ours_to_install() -> None:
    from mmguard.commands.packages import find_install_command

    assert find_install_command(ModuleNotFoundError(name='my_project.models')) is None


def test_a_benchmark_asks_for_its_own_packages_alone() -> None:
    done = alone('from benchmarks.__main__ import main\nsys.exit(main())', '--only', 'nnunet')
    assert done.returncode == 0, done.stderr
    assert 'nnunetv2, nibabel, SimpleITK' in done.stderr


def test_every_test_file_is_collected_with_torch_alone_or_names_what_it_needs() -> None:
    options = ['--collect-only', '-qq', '-p', 'no:cacheprovider', '-p', 'no:xdist', '-c', str(ROOT / 'pyproject.toml')]
    folders = '--rootdir', str(ROOT), str(ROOT / 'tests'), str(ROOT / 'mmguard')
    done = alone(COLLECT, *options, *folders, present=('jinja2',))  # which comes with torch
    outcomes = json.loads(done.stdout.splitlines()[-1])
    files = [file for file in find_test_files() if file.name.startswith('test_')]
    needy = {file for file in files if not read_needs(file) <= read_stack('torch')}
    found = {file: outcomes.get(file.relative_to(ROOT).as_posix()) for file in files}
    wanted = {file: 'skipped' if file in needy else 'passed' for file in files}
    # triton comes with a torch for CUDA.
    for file in (file for file in needy if read_needs(file) <= {*read_stack('torch'), 'triton'}):
        assert found.pop(file) in ('skipped', 'passed')
        del wanted[file]
    assert found == wanted
    assert done.returncode == 0, done.stderr
    assert not [file for file in needy if file.parent.name in ('functional', 'nn', 'detection', 'distributed')]
