"""Command lines: the words themselves are damaged, over inputs that are whole."""

from __future__ import annotations

import base64
import json
import os
import re
from typing import Any, Dict, List

import numpy as np
from config_kinds import python_text, replayable, segmentation_data
from format_cases import NAMES, coco
from kinds import Files, Kind
from label_kinds import BLOCKS, image
from mutations import NUMBERS, Random, damaged_json, damaged_text, odd_text
from pictures import picture
from run_kinds import flight_record

#: Words that no process is ever given: an argument ends at a zero byte.
_LONGEST = 5000
_NUMBER = re.compile(r'-?\d+')


class Arguments(Kind):
    """Damages the command instead of a file."""

    def drawn_command(self, draw: Random, file: str) -> List[str]:
        words = draw.choice(self.commands).split()
        for _ in range(draw.randrange(4)):
            words += draw.choice(self.options[words[0]]).split()
        for _ in range(draw.choice((0, 0, 1, 1, 2))):
            # Not the first: another command would be none that is looked at here.
            place = draw.randrange(1, len(words) + 1)
            values = [place for place, word in enumerate(words) if _NUMBER.fullmatch(word)]
            step = draw.randrange(9)
            if step < 4 and values:
                words[draw.choice(values)] = str(draw.choice((0, 1, 2, 3, 20, 254, 255, 65535, *NUMBERS)))
            elif step < 7:
                words[place : place + 1] = [self._word(draw)]
            elif step == 7:
                del words[place : place + 1]
            else:
                words.insert(place, self._word(draw))
        return words

    def _word(self, draw: Random) -> str:
        word = draw.choice(
            (
                odd_text(draw),
                str(draw.choice(NUMBERS)),
                draw.choice(_WORDS),
                '--' + odd_text(draw),
                f'{odd_text(draw)}:{odd_text(draw)}',
            )
        )
        # As the system gives it to a program: bytes that are no UTF-8 are halves of characters.
        return os.fsdecode(word.encode('utf-8', 'surrogatepass')).replace('\0', '')[:_LONGEST]


_WORDS = (
    '-', '--', '-h', '--json', '--html', '--num-classes', '--ignore-index', '--label-map', '--out', '--colours',
    'train.json', 'maps', 'none', 'maps/a.png', '7:0,8:1', '7:0,', ':', '{}', '{"7": 0}', '{"7": [0]}',
    '{(0,0,0): 1}', '{(0,0): 1}', '[1]', 'train.json/x', '--split', 'train', 'MG101', 'mg', '--rename', 'a:b:c',
    '--debug', '--version',
)  # fmt: skip


def _files() -> Files:
    return {
        'train.json': (json.dumps(coco()).encode(), ()),
        'maps/a.png': (image(BLOCKS, 'PNG'), ()),
        **{name: (content, ()) for name, content in segmentation_data().items()},
        'crash.json': (flight_record(), ()),
        'config.py': (python_text(replayable()), ()),
    }


_SCAN = (
    '--num-classes 3', '--ignore-index 255', '--label-map 7:0,8:1', '--framework detectron2', '--labels ids',
    '--images maps', '--suffix .png', '--json {out}/scan.json', '--html {out}/page.html', '--reduce-zero-label',
    '--split train', '--masks',
)  # fmt: skip
_FIX = (
    '--num-classes 3', '--ignore-index 255', '--label-map 7:0,8:1', '--on-invalid clip', '--classes cat,dog',
    '--rename cat:Cat', '--renumber 0', '--boxes corners', '--scale 0.5', '--no-crowds',
    '--images maps', '--drop-empty', '--colours {(0,0,0):0}', '--threshold 1',
)  # fmt: skip
KINDS = (
    Arguments(
        'arguments',
        _files,
        (
            'scan train.json', 'scan maps', 'scan maps/a.png', 'fix train.json --out {out}/fixed',
            'fix maps --out {out}/fixed --num-classes 3', 'report crash.json', 'explain', 'explain MG101',
            'check config.py', 'apply config.py -o {out}/o.py', 'replay config.py crash.json',
            'trace config.py',
        ),
        {
            'scan': _SCAN,
            'fix': _FIX,
            'report': ('--num-classes 19', '--json {out}/r'),
            'explain': ('MG102',),
            'check': ('--select MG101', '--ignore MG101', '--json {out}/c.json'),
            'apply': ('--edit 1', '--edit safe', '--scan --edit 1', '--force'),
            'replay': ('--last 1', '--seeds 2', '--json {out}/r.json'),
            'trace': ('--sample 0', '--value 3', '--split val', '--seed 1', '--num-classes 3', '--json {out}/t.json'),
        },
        needs=('mmseg', 'PIL'),
        writes_anywhere=True,
    ),
)  # fmt: skip


_SQUARE = [[5, 5], [25, 5], [25, 20], [5, 20.5]]
_SIZE = dict(imageHeight=48, imageWidth=64)


def _shape(label: str, points: Any, kind: str = 'polygon', **more: Any) -> Dict[str, Any]:
    return dict(label=label, points=points, group_id=None, shape_type=kind, flags={}, **more)


def labelme(stem: str) -> Dict[str, Any]:
    """A file with a shape of each kind."""
    mask = base64.b64encode(image(np.ones((6, 8), bool), 'PNG')).decode()
    shapes = [
        _shape('cat', _SQUARE),
        _shape('dog', [[5, 5], [25, 20]], 'rectangle', description=''),
        _shape('bird', [[30, 30], [35, 30]], 'circle'),
        _shape('cat', [[3, 4], [10, 9]], 'mask', mask=mask),
        {**_shape('dog', _SQUARE), 'group_id': 1},
        {**_shape('nose', [[6, 6]], 'point'), 'group_id': 1},
    ]
    held = base64.b64encode(picture()).decode() if stem == 'b' else None
    return dict(version='5.4.1', flags={}, shapes=shapes, imagePath=f'{stem}.jpg', imageData=held, **_SIZE)


def _labelme() -> Files:
    files: Files = {}
    for stem in ('a', 'b'):
        files[f'{stem}.json'] = (json.dumps(labelme(stem)).encode(), (damaged_json,))
        files[f'{stem}.jpg'] = (picture(), ())
    return {**files, 'labels.txt': ('\n'.join(['__ignore__', *NAMES, '']).encode(), (damaged_text,))}


_COMMANDS = (
    'scan . --json {out}/scan.json', 'scan {file} --html {out}/page.html', 'fix . --out {out}/fixed',
    'fix {file} --out {out}/fixed',
)  # fmt: skip
_OPTIONS = {
    'scan': ('--num-classes 3', '--num-classes 2', '--classes cat,dog', '--images images'),
    'fix': ('--classes cat,dog,bird', '--rename cat:Cat', '--edit safe'),
}
SHAPES = (Kind('labelme', _labelme, _COMMANDS, _OPTIONS, needs=('PIL',), renamed=True),)
