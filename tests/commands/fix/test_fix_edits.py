"""`mmguard fix TARGET --edit N` writes what the scan of TARGET offers under that number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List

import label_files
import numpy as np
import pytest
from coco_cases import ann, coco
from masks_of_255 import binary_masks
from PIL import Image
from put_file import put, put_config

from mmguard.cli import main


def boxes(corners: bool, outside: bool = False) -> List[List[int]]:
    found = [[40 * n, 30 * n, 100 + 8 * n, 90 + 8 * n] for n in range(10)]
    if corners:
        found = [[x, y, x + width, y + height] for x, y, width, height in found]
    return [*found, [900, 900, 9, 9]] if outside else found


def write(path: Path, found: List[List[int]], first: int = 0) -> Path:
    annotations = [ann(n, n % 4, first + n % 2, box, area=9000) for n, box in enumerate(found)]
    return put(path, json.dumps(coco(annotations, 4, ['cat', 'dog'], first, (640, 480))))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    monkeypatch.setenv('COLUMNS', '400')


def run(command: str, *words: Any) -> int:
    return main([command, *map(str, words)])


def numbers_of(target: Any, code: str, capsys: Any, *options: Any) -> List[int]:
    """The numbers of the edits of files of a finding."""
    capsys.readouterr()
    run('scan', target, *options, '--json', '-')
    findings = [one for data in json.loads(capsys.readouterr().out)['datasets'] for one in data['findings']]
    return [edit['number'] for one in findings if one['code'] == code for edit in one['edits'] if edit['number']]


def is_clean(target: Any, *options: Any) -> bool:
    return run('scan', target, *options) == 0


def test_the_edit_of_a_number_is_written_and_looked_at_again(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch, snapshot: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    source = write(Path('in', 'train.json'), boxes(corners=True))
    (number,) = numbers_of(source, 'MG172', capsys)
    assert run('fix', source, '-o', 'out', '--edit', number) == 0
    snapshot('fix', 'corners written as sizes', capsys.readouterr().out)
    assert is_clean('out/train.json')
    written = json.loads((tmp_path / 'out' / 'train.json').read_text())
    assert [one['bbox'] for one in written['annotations']] == boxes(corners=False)


def test_boxes_that_seem_to_be_corners_are_not_clamped(tmp_path: Path, capsys: Any) -> None:
    source = write(tmp_path / 'my set' / 'train.json', boxes(corners=True), first=5)
    of_detr = ('--framework', 'detr', '--num-classes', 2)
    (renumber, *_) = numbers_of(source, 'MG138', capsys, *of_detr)
    for words in ([], ['--renumber', 0], [*of_detr, '--edit', renumber]):
        assert run('fix', source, '-o', tmp_path / 'out', *words) == 2
        assert f"mmguard fix '{source}' --out fixed --boxes corners" in capsys.readouterr().err
        assert not (tmp_path / 'out').exists()
    assert run('fix', source, '-o', tmp_path / 'out', '--boxes', 'sizes') == 0  # the user knows better
    written = json.loads((tmp_path / 'out' / 'train.json').read_text())['annotations']
    assert written[-1]['bbox'] == [360, 270, 280, 210]  # clamped
    assert run('fix', source, '-o', tmp_path / 'other', '--boxes', 'corners') == 0
    written = json.loads((tmp_path / 'other' / 'train.json').read_text())['annotations']
    assert [one['bbox'] for one in written] == boxes(corners=False)


@pytest.mark.parametrize(
    ('values', 'words', 'code'),
    [
        ([0, 255], (), 'MG103'),
        ([0, 255], ('--num-classes', 2), 'MG133'),
        ([0, 7, 11, 26], ('--num-classes', 4), 'MG116'),
        ([0, 7, 11, 26], ('--num-classes', 4, '--ignore-index', 200), 'MG116'),
    ],
)
def test_the_map_that_is_offered_for_a_bare_folder_leaves_a_clean_one(
    values: List[int], words: Any, code: str, tmp_path: Path, capsys: Any
) -> None:
    label = np.random.default_rng(0).choice(np.array(values, np.uint8), (40, 50))
    maps = label_files.write_copies(tmp_path / 'my maps', label, 4)
    assert run('scan', f'{maps}/', *words, '--json', tmp_path / 'scan.json') == 1
    (data,) = json.loads((tmp_path / 'scan.json').read_text())['datasets']
    (finding,) = (finding for finding in data['findings'] if finding['code'] == code)
    tables = [edit['options']['label_map'] for edit in finding['edits'] if 'label_map' in edit['options']]
    assert tables
    for number, table in enumerate(tables):
        out, said = tmp_path / f'out{number}', ('--num-classes', len(values), *words[2:])
        label_map = ','.join(f'{value}:{label}' for value, label in table)
        assert run('fix', maps, '-o', out, *said, '--label-map', label_map) == 0, capsys.readouterr()
        assert is_clean(out, *said), capsys.readouterr().out


def test_after_a_guess_it_says_legal_and_not_right(tmp_path: Path, capsys: Any) -> None:
    binary_masks(tmp_path, '', 64, '.jpg')
    maps, words = tmp_path / 'masks', ('--num-classes', 2)
    (first, *_) = numbers_of(maps, 'MG136', capsys, *words)
    assert run('fix', maps, '-o', tmp_path / 'out', *words, '--edit', first) == 0
    said = capsys.readouterr().out
    assert 'nothing found' not in said
    assert str(tmp_path / 'out' / '0.png') in said.splitlines()[-2]  # the picture to look at


def test_ids_of_all_splits_are_numbered_together_or_none(tmp_path: Path, capsys: Any) -> None:
    known = ('--framework', 'detr', '--num-classes', 2)
    files = [write(tmp_path / 'in' / f'{split}.json', boxes(corners=False), first=5) for split in ('train', 'val')]
    (number, *_) = set(numbers_of(tmp_path / 'in', 'MG138', capsys, *known))
    assert run('fix', tmp_path / 'in', '-o', tmp_path / 'out', *known, '--edit', number) == 0
    written = [json.loads(path.read_text())['categories'] for path in (tmp_path / 'out').rglob('*.json')]
    assert [[one['id'] for one in categories] for categories in written] == [[0, 1], [0, 1]]
    record = json.loads(files[1].read_text())
    record['categories'].reverse()  # the same names have other places
    files[1].write_text(json.dumps(record))
    assert numbers_of(tmp_path / 'in', 'MG138', capsys, *known) == []


def test_two_edits_of_one_file_are_one_copy(tmp_path: Path, capsys: Any) -> None:
    source = write(tmp_path / 'in' / 'train.json', boxes(corners=True), first=5)
    known = ('--num-classes', 2)
    (corners,) = numbers_of(source, 'MG172', capsys, *known)
    words = (*known, '--edit', corners, '--edit')
    numbers = numbers_of(source, 'MG138', capsys, *known)
    first = next(number for number in numbers if run('fix', source, '-o', tmp_path / f'{number}', *words, number) == 0)
    written = json.loads((tmp_path / f'{first}' / 'train.json').read_text())
    assert [one['bbox'] for one in written['annotations']] == boxes(corners=False)
    assert [one['id'] for one in written['categories']] == [0, 1]


def test_all_safe_ones(tmp_path: Path) -> None:
    source = write(tmp_path / 'in' / 'train.json', boxes(corners=False))
    record = json.loads(source.read_text())
    for annotation in record['annotations']:
        del annotation['area']
    source.write_text(json.dumps(record))
    assert run('fix', source, '-o', tmp_path / 'out', '--edit', 'safe') == 0
    assert is_clean(tmp_path / 'out' / 'train.json')
    assert len(json.loads((tmp_path / 'out' / 'train.json').read_text())['annotations']) == 10
    loses = write(tmp_path / 'in' / 'loses.json', boxes(corners=False, outside=True))
    assert run('fix', loses, '-o', tmp_path / 'none', '--edit', 'safe') == 2  # an object would go: that is asked
    assert not (tmp_path / 'none').exists()


def test_the_hint_of_the_scan_is_the_command(tmp_path: Path, capsys: Any) -> None:
    source = write(tmp_path / 'my set' / 'train.json', boxes(corners=True))
    run('scan', source, '--num-classes', 2, '--labels', 'positions')
    hint = f"mmguard fix '{source}' --out DIR --num-classes 2 --labels positions --edit N"
    assert hint in capsys.readouterr().out
    assert run('fix', source, '-o', tmp_path / 'out', '--num-classes', 2, '--labels', 'positions', '--edit', 1) == 0


def test_numbers_that_are_none_are_refused(tmp_path: Path, capsys: Any) -> None:
    source = write(tmp_path / 'in' / 'train.json', boxes(corners=True))
    for number in ('99', 'x', '0'):
        assert run('fix', source, '-o', tmp_path / 'out', '--edit', number) == 2
        assert number in capsys.readouterr().err
    fine = write(tmp_path / 'in' / 'fine.json', boxes(corners=False))
    assert run('fix', fine, '-o', tmp_path / 'out', '--edit', 'safe') == 2
    assert not (tmp_path / 'out').exists()


def test_a_config_has_both_kinds_of_edits_and_each_command_names_the_other(tmp_path: Path, capsys: Any) -> None:
    pytest.importorskip('mmdet')
    splits = []
    for split in ('train', 'val'):
        path = write(tmp_path / f'{split}.json', boxes(corners=True))
        splits.append(
            f'{split}_dataloader = dict(batch_size=1, dataset=dict(type="CocoDataset", ann_file={str(path)!r}, '
            f'data_prefix=dict(img=""), metainfo=dict(classes=("cat", "dog")), pipeline=[]))'
        )
    config = tmp_path / 'config.py'
    config.write_text(
        'default_scope = "mmdet"\nmodel = dict(type="RetinaNet", bbox_head=dict(type="RetinaHead", '
        'num_classes=3))\n' + '\n'.join(splits)
    )
    files, of_config = (first_number(config, what, capsys) for what in ('files', 'config'))
    assert run('fix', config, '-o', tmp_path / 'out', '--edit', files) == 0, capsys.readouterr()
    for split, place in (('train', '1'), ('val', '2')):
        written = json.loads((tmp_path / 'out' / place / f'{split}.json').read_text())
        assert [one['bbox'] for one in written['annotations']] == boxes(corners=False)
    assert 'MG172' not in capsys.readouterr().out
    assert run('apply', config, '-o', tmp_path / 'new.py', '--scan', '--edit', files) == 2
    assert f'`mmguard fix {config} --out DIR --edit {files}`' in capsys.readouterr().err
    assert run('fix', config, '-o', tmp_path / 'other', '--edit', of_config) == 2
    assert f'`mmguard apply {config} -o OUT.py --scan --edit {of_config}`' in capsys.readouterr().err


def first_number(target: Path, what: str, capsys: Any) -> int:
    """The number of the first edit of ``files``, or of the ``config``."""
    capsys.readouterr()
    run('scan', target, '--json', '-')
    datasets = json.loads(capsys.readouterr().out)['datasets']
    edits = [edit for one in datasets for finding in one['findings'] for edit in finding['edits']]
    return next(edit['number'] for edit in edits if edit['number'] and edit[what])


OBJECTS: Dict[str, Any] = {
    # Code -> what an object is in the files, and how they end.
    'MG120': (lambda inside: inside[..., None] * np.array([128, 0, 0], np.uint8), 'png'),
    'MG136': (lambda inside: (inside * 255).astype(np.uint8), 'jpg'),
}


def test_masks_of_another_kind_bring_their_ending_into_the_config(tmp_path: Path, capsys: Any) -> None:
    """MG136 of masks stored as JPEG: the copies are PNG, so the config must list other names (mmsegmentation#1338)."""
    pytest.importorskip('mmseg')
    loaders = {
        f'{split}_dataloader': dict(batch_size=2, dataset=binary_masks(tmp_path, split, 64, '_m.jpg'))
        for split in ('train', 'val')
    }
    head = dict(type='FCNHead', num_classes=2, loss_decode=dict(type='CrossEntropyLoss'))
    model = dict(type='EncoderDecoder', decode_head=head)
    config = put_config(tmp_path / 'config.py', default_scope='mmseg', model=model, **loaders)
    edited, out = tmp_path / 'edited.py', tmp_path / 'out'
    number = first_number(config, 'files', capsys)
    assert run('apply', config, '-o', edited, '--scan', '--edit', number) == 0
    assert f'`mmguard fix {config} --out DIR --edit {number}`' in capsys.readouterr().out
    assert run('fix', config, '-o', out, '--edit', number) == 0
    assert f'`mmguard apply {config} -o OUT.py --scan --edit {number}`' in capsys.readouterr().out
    for place, split in (('1', 'train'), ('2', 'val')):
        (out / place).rename(out / split)
    (tmp_path / 'masks').rename(tmp_path / 'originals')
    out.rename(tmp_path / 'masks')
    assert run('scan', edited) == 0, capsys.readouterr()


#: Values around black and white in three equal channels: an object of a second image editor.
SHADES = {
    'nearly white': lambda inside: np.where(inside, 250 + np.indices(inside.shape)[0] % 6, 0),
    'soft edges': lambda inside: np.where(inside, 255, np.where(np.roll(inside, 1, 0), 90, 3)),
}


def shaded(name: str) -> Any:
    return lambda inside: np.stack([SHADES[name](inside).astype(np.uint8)] * 3, -1), 'png'


@pytest.mark.parametrize(
    ('code', 'files', 'classes'),
    [
        *((code, files, 2) for code, files in OBJECTS.items()),
        *(('MG580', shaded(name), classes) for name in SHADES for classes in (1, 2)),
    ],
)
def test_a_folder_of_label_maps_is_written_and_scanned_again(
    code: str, files: Any, classes: int, tmp_path: Path, capsys: Any
) -> None:
    folder, (draw, ending) = tmp_path / 'masks', files
    for number in range(6):
        inside = np.zeros((32, 32), bool)
        inside[8:20, 8 : 24 + number % 3] = True
        label_files.write(folder / f'{number}.{ending}', draw(inside))
    (number,) = numbers_of(folder, code, capsys, '--num-classes', classes)
    assert run('fix', folder, '-o', tmp_path / 'out', '--num-classes', classes, '--edit', number) == 0
    written = sorted((tmp_path / 'out').glob('*.png'))
    assert len(written) == 6
    for path in written:
        with Image.open(path) as image:
            assert (image.mode, sorted(set(np.asarray(image).ravel().tolist()))) == ('L', [0, 1])
    assert is_clean(tmp_path / 'out', '--num-classes', 2)


@pytest.mark.parametrize('words', [(), ('--num-classes', 2), ('--num-classes', 5)])
def test_objects_of_id_0_are_numbered_from_1(words: Any, tmp_path: Path, capsys: Any) -> None:
    source = write(tmp_path / 'in' / 'train.json', boxes(corners=False))
    of_torchvision = ('--framework', 'torchvision')
    (number,) = numbers_of(source, 'MG581', capsys, *of_torchvision, *words)
    assert run('fix', source, '-o', tmp_path / 'out', *of_torchvision, *words, '--edit', number) == 0
    written = json.loads((tmp_path / 'out' / 'train.json').read_text())
    assert {one['category_id'] for one in written['annotations']} == {1, 2}
    assert is_clean(tmp_path / 'out' / 'train.json', *of_torchvision, '--num-classes', 3)
