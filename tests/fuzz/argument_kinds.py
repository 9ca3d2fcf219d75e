"""Command lines: the words themselves are damaged, over inputs that are whole."""

from __future__ import annotations

import json
import os
import re
from typing import List

from config_kinds import python_text, replayable, segmentation_data
from format_cases import BLOCKS, coco
from kinds import Files, Kind
from mutations import NUMBERS, Random, odd_text
from pictures import encode
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
    '-', '--', '-h', '--json', '--html', '--num-classes', '--ignore-index', '--label-map', '--out', '--colors',
    'train.json', 'maps', 'none', 'maps/a.png', '7:0,8:1', '7:0,', ':', '{}', '{"7": 0}', '{"7": [0]}',
    '{(0,0,0): 1}', '{(0,0): 1}', '[1]', 'train.json/x', '--split', 'train', 'MG101', 'mg', '--rename', 'a:b:c',
    '--debug', '--version',
)  # fmt: skip


def _files() -> Files:
    return {
        'train.json': (json.dumps(coco()).encode(), ()),
        'maps/a.png': (encode(BLOCKS), ()),
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
    '--images maps', '--drop-empty', '--colors {(0,0,0):0}', '--threshold 1',
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
            'report': ('--verbose', '--json {out}/r'),
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
