"""``mmguard.scan``, ``check``, ``dry_run`` and ``explain``: the commands as functions."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from coco_cases import ann, coco, write
from put_file import put

import mmguard
from mmguard.cli import main
from mmguard.errors import CannotRun

Image = pytest.importorskip('PIL.Image')
ROOT = Path(mmguard.__file__).parent
PSPNET = 'pspnet/pspnet_r50-d8_4xb2-40k_cityscapes-512x1024.py'

LOG = """Traceback (most recent call last):
  File "train.py", line 3, in <module>
    loss = F.cross_entropy(scores, labels)
IndexError: Target 11 is out of bounds.
"""


@pytest.fixture
def maps(tmp_path):
    """More label maps with invalid values than the worst 20 that the screen names, and valid ones."""
    folder = tmp_path / 'maps'
    folder.mkdir()
    for number in range(40):
        label = Image.new('L', (8, 8), 1)
        if number < 30:
            label.paste(7, (0, 0, 1, number % 8 + 1))
        label.save(folder / f'{number:02}.png')
    return folder


def test_no_module_hides_a_function():
    """A package that is named like a function would replace it as soon as it is imported."""
    code = (
        'import importlib, pkgutil, mmguard\n'
        'for found in pkgutil.walk_packages(mmguard.__path__, "mmguard."):\n'
        '    try:\n'
        '        importlib.import_module(found.name)\n'
        '    except ImportError:\n'
        '        pass\n'
        'print([name for name in ("scan", "check", "dry_run", "explain", "read_log") '
        'if not callable(getattr(mmguard, name))])\n'
    )
    shown = subprocess.run([sys.executable, '-W', 'ignore', '-c', code], capture_output=True, text=True, check=True)
    assert shown.stdout.splitlines()[-1] == '[]'


def test_type_checkers_see_what_dir_lists():
    stub = ast.parse((ROOT / '__init__.pyi').read_text())
    imported = {name.asname for node in stub.body if isinstance(node, ast.ImportFrom) for name in node.names}
    defined = {node.name for node in stub.body if isinstance(node, ast.FunctionDef)}
    assert imported | defined == set(dir(mmguard))


def test_scan_names_every_offending_file(maps, tmp_path):
    found = mmguard.scan(maps, num_classes=3, processes=1)
    assert not found
    assert found.files == {f'{number:02}.png': number % 8 + 1 for number in range(30)}
    assert main(['scan', str(maps), '--num-classes', '3', '--processes', '1', '--json', str(tmp_path / 'o.json')]) == 1
    written = json.loads((tmp_path / 'o.json').read_text())
    assert written['datasets'][0]['facts']['offending'] == found.files
    assert [one['code'] for one in written['datasets'][0]['findings']] == [one.code for one in found.findings]
    assert mmguard.scan(maps, num_classes=8, processes=1)


def test_scan_of_boxes_names_every_image(tmp_path):
    boxes = [[0, 0, 4, 4]] * 10 + [[0, 0, 0, 4]] * 40
    record = coco([ann(number, number, box=box) for number, box in enumerate(boxes)], 50, ['cat'])
    assert mmguard.scan(write(tmp_path, record)).files == {f'{number}.jpg': 1 for number in range(10, 50)}


def test_a_misspelt_option_is_a_type_error(maps):
    with pytest.raises(TypeError, match='num_clases'):
        mmguard.scan(maps, num_clases=3)


def test_check_is_the_command(tmp_path):
    pytest.importorskip('mmseg')
    base = Path(find_spec('mmseg').origin).parent / '.mim' / 'configs' / PSPNET  # the onedl fork knows no mmseg::
    file = put(tmp_path / 'mine.py', f'_base_ = [{str(base)!r}]\nmodel = dict(auxiliary_head=dict(num_classes=11))\n')
    found = mmguard.check(file, verify=False)
    assert (bool(found), [one.code for one in found.findings]) == (False, ['MG201'])
    assert found.findings[0].edits
    assert 'MG201' in str(found)
    assert mmguard.check(base)


def test_dry_run_is_the_command(tmp_path):
    pytest.importorskip('mmdet')
    base = Path(find_spec('mmdet').origin).parent / '.mim' / 'configs/retinanet/retinanet_r50_fpn_1x_coco.py'
    file = put(tmp_path / 'mine.py', f'_base_ = [{str(base)!r}]\n')
    found = mmguard.dry_run(file, only=['batch-variants'], samples=0)
    assert [one['name'] for one in found.record['properties']] == ['batch-variants']
    assert bool(found) is all(one['outcome'] != 'broken' for one in found.record['properties'])


@pytest.mark.parametrize('as_file', [False, True])
def test_explain_takes_a_text_or_a_path(tmp_path, maps, as_file):
    log = LOG
    if as_file:
        log = put(tmp_path / 'train.log', LOG)
    found = mmguard.explain(log)
    assert (bool(found), found.findings[0].code) == (False, 'MG413')
    causes = found.record['causes']
    assert {one['standing'] for one in causes} == {'possible'}
    # Nothing separates them: each is named with the look that decides, and none comes first.
    assert all(one['look'] in found.findings[0].advice for one in causes)
    assert not found.findings[0].advice.startswith(causes[0]['cause'])
    with_labels = mmguard.explain(log, data=str(maps), num_classes=3)
    assert [one.code for one in with_labels.findings][:2] == [
        'MG413',
        mmguard.scan(maps, num_classes=3).findings[0].code,
    ]


def test_explain_of_a_log_without_error_is_true(tmp_path, capsys):
    (tmp_path / 'train.log').write_text('epoch 1 loss 0.5\nepoch 2 loss 0.4\ntraining finished\n')
    found = mmguard.explain(tmp_path / 'train.log')
    assert found
    main(['explain', str(tmp_path / 'train.log')])
    assert str(found) == capsys.readouterr().out.rstrip('\n')
    with pytest.raises(CannotRun):
        mmguard.explain(tmp_path / 'missing.log')


def test_frame_and_page(maps):
    pandas = pytest.importorskip('pandas')
    found = mmguard.scan(maps, num_classes=3, processes=1)
    frame = found.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame['code']) == [one.code for one in found.findings]
    pictures = [found.show(number).count('data:image/') for number in (0, 1, 2)]
    assert pictures[0] < pictures[1] < pictures[2]
    assert 'srcdoc=' in found._repr_html_()


def test_a_notebook_shows_findings_frame_and_pictures(maps, tmp_path):
    """Run in a real kernel, as a reader of the documentation would."""
    nbclient, nbformat = pytest.importorskip('nbclient'), pytest.importorskip('nbformat')
    lines = [
        f'import mmguard; found = mmguard.scan({str(maps)!r}, num_classes=3, processes=1)',
        'found',
        'found.to_frame()',
        'found.show(2)',
        'bool(found), len(found.files)',
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(line) for line in lines])
    nbclient.NotebookClient(notebook, timeout=120, resources={'metadata': {'path': str(tmp_path)}}).execute()
    shown = [[output.data for output in cell.outputs if 'data' in output] for cell in notebook.cells]
    assert 'srcdoc=' in shown[1][0]['text/html']
    assert '<table' in shown[2][0]['text/html']
    assert shown[3][0]['text/html'].count('data:image/') >= 2
    assert shown[4][0]['text/plain'] == '(False, 30)'
