"""Inputs that once broke a command, made anew; each with the command, and what is right to say of it."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, NamedTuple, Sequence

from annotation_kinds import panoptic
from argument_kinds import labelme
from config_kinds import segmentation_data
from format_cases import coco
from label_kinds import BLOCKS, image, nnunet_files
from pictures import picture


class Seen(NamedTuple):
    """An input, a command over it, and its outcome.

    Attributes:
        name (str): What is odd about it.
        files (dict[str, bytes]): Its files.
        command (str): Runs in their folder; ``{out}`` is another, empty one.
        code (int): How it is to end.
        words (sequence of str): What it is to say, on standard output or error.
        needs (sequence of str): Packages.
    """

    name: str
    files: Dict[str, bytes]
    command: str
    code: int
    words: Sequence[str] = ()
    needs: Sequence[str] = ()


def _half_of_a_character(table: str, key: str) -> Dict[str, bytes]:
    """In the name of a class or of a file; a box reaches out of its image."""
    record = coco()
    record['annotations'][0]['bbox'] = [1, 1, 500, 5]
    record[table][0][key] = '\ud800'
    return {'a.json': json.dumps(record).encode()}


_FIX = 'fix a.json --out {out}/fixed'
ANNOTATIONS: List[Seen] = [
    Seen('half of a character as a class', _half_of_a_character('categories', 'name'), _FIX, 1),
    Seen('half of a character as a file', _half_of_a_character('images', 'file_name'), _FIX, 1),
]


def _voc(content: str) -> Dict[str, bytes]:
    return {'Annotations/a.xml': content.encode(), 'JPEGImages/a.jpg': picture(), 'ImageSets/Main/train.txt': b'a\n'}


def _object(name: str = 'cat', right: str = '40', size: str = '64') -> str:
    return (
        f'<annotation><size><width>{size}</width><height>48</height></size><object><name>{name}</name>'
        f'<difficult>0</difficult><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>{right}</xmax><ymax>9</ymax></bndbox></object>'
        '</annotation>'
    )


ANNOTATIONS += [
    Seen('no finite corner', _voc(_object(right='inf', size='nan')), 'fix . --out {out}/fixed', 1, (), ['PIL']),
    Seen(
        'a name that turns the line', _voc(_object('a\x7f\u202egnp', right='0')), 'scan .', 1, ['\\u202egnp'], ['PIL']
    ),
]


def _negative_area() -> Dict[str, bytes]:
    """A segment that mmdet leaves out."""
    files = _panoptic(bytes)
    return {**files, 'train.json': files['train.json'].replace(b'"area": 400', b'"area": -1', 1)}


def _panoptic(damaged: Callable[[bytes], bytes]) -> Dict[str, bytes]:
    """A set with a PNG that is damaged."""
    files = {name: content for name, (content, _) in panoptic().items()}
    return {**files, 'train/1.png': damaged(files['train/1.png'])}


def _half_a_character(name: str, record: Any) -> Dict[str, bytes]:
    """A key that is half of a character, in the bytes that no UTF-8 has."""
    content = json.dumps({**record, '\ud800': 1}, ensure_ascii=False).encode('utf-8', 'surrogatepass')
    return {name: content, 'a.jpg': picture()}


ANNOTATIONS += [
    Seen('no UTF-8 of Labelme', _half_a_character('a.json', labelme('a')), 'scan .', 1, ['MG132', 'utf-8'], ['PIL']),
    Seen('a segment with a negative area', _negative_area(), 'scan train.json', 1, ['MG179', 'area -1'], ['PIL']),
    *(
        Seen(name, _panoptic(damaged), 'scan train.json', 1, ['MG132', '1.png'], ['PIL'])
        for name, damaged in (
            ('a PNG without its end', lambda png: png[:-12]),
            ('a PNG without its last byte', lambda png: png[:-1]),
            ('a PNG with another checksum', lambda png: png[:-16] + bytes(4) + png[-12:]),
        )
    ),
]


def _deep_label() -> Dict[str, bytes]:
    """A dataset.json with a label nested in lists."""
    files = {name: content for name, (content, _) in nnunet_files('.nii').items()}
    deep = b'[' * 400 + b'1' + b']' * 400
    described = {**json.loads(files['dataset.json']), 'labels': {'background': 0, 'a': 1, 'b': 2}}
    return {**files, 'dataset.json': json.dumps(described).encode().replace(b'"a": 1', b'"a": ' + deep)}


VOLUMES = [Seen('a deep label', _deep_label(), 'scan . --json {out}/scan.json', 1, (), ['nibabel'])]

MAPS: List[Seen] = [
    Seen(
        'a CMYK image',
        {'a.tif': image(BLOCKS * 60, 'TIFF', 'CMYK')},
        'scan . --num-classes 5',
        2,
        ['CMYK'],
        ['PIL'],
    )
]


def _manifest(name: str, content: bytes) -> Seen:
    """A folder of copies whose list is damaged: they are labels all the same."""
    files = {'a.png': image(BLOCKS, 'PNG'), 'manifest.json': content}
    return Seen(name, files, 'fix . --out {out}/fixed --num-classes 3', 0, (), ['PIL'])


_MANIFEST = '{"written_by": "mmguard fix", "options": {"num_classes": 4}, "files": %s}'
MAPS += [
    _manifest('a deep manifest', (_MANIFEST % ('[' * 5000 + ']' * 5000)).encode()),
    _manifest('a manifest with a number of files', (_MANIFEST % '5').encode()),
    _manifest('a manifest that is no UTF-8', b'\xff\xfe' + _MANIFEST.encode()),
]

_SEG = "default_scope = 'mmseg'\nmodel = dict(type='EncoderDecoder', decode_head=dict(type='FCNHead', num_classes=3))\n"
_REPEATED = (
    f"{_SEG}train_dataloader = dict(dataset=dict(type='RepeatDataset', times=-2, dataset=dict(type='BaseSegDataset',\n"
    "    data_root='.', data_prefix=dict(img_path='img', seg_map_path='ann'), img_suffix='.jpg', pipeline=[])))\n"
)
#: More configs: tests/config/test_config_commands.py.
CONFIGS = [
    Seen(
        'fewer than no repetitions',
        {'config.py': _REPEATED.encode(), 'img/a.jpg': picture(), 'ann/a.png': b''},
        'trace config.py',
        2,
        needs=['mmseg', 'mmdet'],
    )
]

_LONG_WORD = b'Traceback (most recent call last):\n  File "a.py", line 1, in f\nIndexError: ' + b'x' * 20_000
COMMAND_LINES: List[Seen] = [
    Seen('colours in an option', {'a.txt': b''}, 'check a.txt --\x1b[31mred', 2, ['--\\x1b[31mred']),
    Seen('colours in a file', {'a.txt': b''}, 'scan \x1b[31mred', 2, ['\\x1b[31mred']),
    Seen('a long word in an error', {'a.log': _LONG_WORD}, 'explain a.log', 1, ['IndexError']),
    Seen('a label of 65 bits', {'a.log': b'x'}, f'explain a.log --ignore-index {2**64}', 2, ['--ignore-index']),
    Seen('a code that turns the line', {'a.txt': b''}, 'explain \u202eMG', 2, ['\\u202eMG']),
]


def _run(name: str, config: str, source: str = 'a.png', words: Sequence[str] = ()) -> Seen:
    """A run of one line, and its config."""
    sample = dict(source=source, skipped=5, remapped=0, values={'24': 5})
    line = json.dumps(dict(mode='train', iter=1, skipped_pixels=5, total=10, samples=[sample])).encode()
    return Seen(name, {'label_guard.jsonl': line + b'\n', 'config.py': config.encode()}, _PAGE, 1, words)


_PAGE = 'report . --json {out}/report.json'
_HEAD = 'model = dict(decode_head=dict(num_classes={}))\n'
RUNS: List[Seen] = [
    _run('a config of lists as keys', f'x = {{[]: 1}}\n{_HEAD.format(10**30)}'),
    _run('a config with a list made negative', f'x = {{-[1]: 1}}\n{_HEAD.format(19)}'),
    _run('a config nested deeply', f'x = {"-" * 3000}1\n{_HEAD.format(19)}'),
    _run('an ignored label as a text', _HEAD.format("19, ignore_index='x'")),
    _run('a list of ignored labels', _HEAD.format('19, ignore_index=[255]')),
    _run('half of a character as a source', _HEAD.format(19), '\ud800', ['\\ud800']),
    Seen('a deep record', {'label_guard_flight.jsonl': b'[' * 100_000 + b']' * 100_000}, _PAGE, 2),
]

_CONFIG = f"{_SEG}train_dataloader = dict(dataset=dict(type='BaseSegDataset', pipeline=[]))\n".encode()

RUNS.append(
    Seen(
        'a deep record, replayed',
        {
            'config.py': _CONFIG,
            'crash.json': b'[' * 100_000 + b']' * 100_000,
            **segmentation_data(),
        },
        'replay config.py crash.json',
        2,
        ['crash.json'],
        ['mmseg', 'PIL'],
    )
)
