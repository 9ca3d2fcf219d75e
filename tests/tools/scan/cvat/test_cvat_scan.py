"""XML of CVAT: planted faults are named with their lines, clean sets are clean, damaged files do not end the scan."""

from __future__ import annotations

import io
import json
import random
import re
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest
from PIL import Image
from scans import check_damaged, edits, followed, scanned

from mmguard.cli import main

NAMES = ('cat', 'cow', 'dog')
KINDS = ('box', 'polygon', 'ellipse', 'mask', 'turned')
#: The line of the first shape of the first image.
FIRST, SHAPES = 10, 3


@lru_cache(maxsize=None)
def picture(width: int = 64, height: int = 48) -> bytes:
    out = io.BytesIO()
    Image.new('RGB', (width, height), 0).save(out, 'JPEG')
    return out.getvalue()


def box(label: str, left: float, top: float, right: float, bottom: float, more: str = '') -> str:
    corners = f'xtl="{left}" ytl="{top}" xbr="{right}" ybr="{bottom}"'
    return f'<box label="{label}" source="manual" occluded="0" {corners}{more}></box>'


def polygon(label: str, *points: str, tag: str = 'polygon') -> str:
    return f'<{tag} label="{label}" source="manual" occluded="0" points="{";".join(points)}" z_order="0"></{tag}>'


def mask(label: str, rle: str = '5, 10, 5', width: int = 5) -> str:
    return f'<mask label="{label}" source="manual" rle="{rle}" left="3" top="4" width="{width}" height="4"></mask>'


def sound(kind: str, number: int) -> List[str]:
    """Three shapes without a fault, each time the same."""
    draw = random.Random(f'{kind} {number}')
    found = []
    for place in range(SHAPES):
        x, y, w, h = draw.randint(8, 30), draw.randint(8, 20), draw.randint(4, 18), draw.randint(4, 18)
        name = NAMES[(number + place) % 3]
        found.append(
            {
                'box': box(name, x, y, x + w + 0.25, y + h),
                'turned': box(name, x, y, x + w, y + h, ' rotation="33.50"'),
                'polygon': polygon(name, f'{x},{y}', f'{x + w}.50,{y}', f'{x},{y + h}'),
                'ellipse': f'<ellipse label="{name}" cx="{x + 5}" cy="{y + 5}" rx="4.5" ry="3"></ellipse>',
                'mask': mask(name),
            }[kind]
        )
    return found


def text_of(images: List[Tuple[str, List[str]]], labels: Tuple[str, ...] = NAMES, head: str = '') -> str:
    """A file: a line for each element."""
    declared = ''.join(f'<label><name>{name}</name><type>any</type></label>' for name in labels)
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>', f'{head}<annotations>', '<version>1.1</version>', '<meta>', '<task>',
        f'<labels>{declared}</labels>', '</task>', '</meta>',
    ]  # fmt: skip
    for number, (attributes, shapes) in enumerate(images):
        lines += [f'<image id="{number}" {attributes}>', *shapes, '</image>']
    return '\n'.join([*lines, '</annotations>', ''])


def image(number: int, size: str = 'width="64" height="48"') -> str:
    return f'name="{number:02d}.jpg" subset="default" {size}'


def make(root: Path, kind: str = 'box', files: int = 14, pictures: bool = True, **planted: Any) -> Path:
    """Writes a data set; ``planted``: ``images``, number of an image -> attributes and shapes behind its own."""
    (root / 'images').mkdir(parents=True, exist_ok=True)
    images = []
    for number in range(files):
        attributes, more = planted.get('images', {}).get(number, (image(number), []))
        images.append((attributes, [*sound(kind, number), *more]))
        if pictures:
            (root / 'images' / f'{number:02d}.jpg').write_bytes(picture())
    (root / 'annotations.xml').write_text(text_of(images, planted.get('labels', NAMES)))
    return root


def line_of(number: int) -> int:
    """The line of what is planted in an image, where each before it has one planted, too."""
    return FIRST + number * (SHAPES + 3) + SHAPES


#: What is planted, each in an image of its own -> the code that names it.
PLANTED: List[Tuple[str, str]] = [
    (box('horse', 5, 5, 15, 15), 'MG154'),
    (box('cat', 40, 5, 80, 30), 'MG152'),
    (box('cat', 100, 5, 120, 30), 'MG109'),
    (box('cat', 15, 5, 5, 30), 'MG109'),
    (polygon('cat', '5,5', '15,15'), 'MG179'),
    (polygon('cat', '5,5', tag='points'), 'MG179'),
    (polygon('cat', '5,5', '15,15', '20,20', tag='polyline'), 'MG179'),
    (mask('cat', '5, 10, 6'), 'MG179'),
    (box('', 5, 5, 15, 15), 'MG176'),
    (box('cat', float('nan'), 5, 15, 15), 'MG176'),
    ('<box label="cat" xtl="5" ytl="5" xbr="15"></box>', 'MG176'),
    (polygon('cat', '5,5', '15', '20,20'), 'MG176'),
    (polygon('cat', '5,5', '15,5', '20,20', tag='triangle'), 'MG176'),
    (polygon('cat', '-9,5', '15,5', '20,20'), 'MG152'),
]


def test_planted_faults_are_named_with_file_and_line(tmp_path: Path) -> None:
    planted = {number: (image(number), [text]) for number, (text, _) in enumerate(PLANTED)}
    planted[14] = (image(14, 'width="64" height="0"'), [])
    planted[15] = (image(16), [])  # named twice
    planted[18] = ('width="64" height="48"', [])
    root = make(tmp_path / 'set', files=20, images=planted)
    (root / 'images/17.jpg').unlink()
    code, found, facts = scanned(root, tmp_path / 'scan.json')
    assert code == 1
    said = json.dumps([facts['annotations'][key] for key in ('unreadable', 'mask_examples', 'box_examples')])
    for number, (_, expected) in enumerate(PLANTED):
        assert expected in found
        assert expected == 'MG154' or f'annotations.xml: line {line_of(number)}' in said, number
    assert "1 annotation of 'horse'" in found['MG154']
    assert 'height or width of an image is no whole number above 0: annotations.xml: line 93' in found['MG176']
    assert 'an image has no name' in said
    assert '16.jpg' in found['MG147']
    assert '17.jpg' in found['MG150']
    assert set(found) == {*(expected for _, expected in PLANTED), 'MG147', 'MG150'}
    assert facts['files'] == 20
    (root / 'images/19.jpg').write_bytes(picture(30, 20))
    found = scanned(root, tmp_path / 'scan.json')[1]
    assert '19.jpg: 30 x 20 on disk, 64 x 48 in the annotations' in found['MG175']


#: Shapes behind those of the first images, and the code of the finding that goes.
EDITS: Dict[str, Tuple[List[str], str]] = {
    'case': ([box('Cat', 5, 5, 15, 15), box('cat ', 5, 5, 15, 15)], 'MG177'),
    'a slip': ([box('cowx', 5, 5, 15, 15), box('doog', 5, 5, 15, 15)], 'MG154'),
    'over the edge': ([box('cat', 40, 5, 80, 30), polygon('dog', '40,5', '80,5', '60,20')], 'MG152'),
    'below 0': ([polygon('cat', '-9,5', '20,30', '3,40')], 'MG152'),
    'outside': ([box('cat', 100, 5, 120, 30)], 'MG109'),
    'no area': ([box('cat', 5, 5, 5, 30)], 'MG109'),
    'two points': ([polygon('cat', '5,5', '15,15')], 'MG179'),
    'a damaged mask': ([mask('cat', '5, x')], 'MG179'),
    'no label': ([box('', 5, 5, 15, 15), '<box label="cat"></box>'], 'MG176'),
}


@pytest.mark.parametrize('name', sorted(EDITS))
def test_every_edit_followed_leaves_a_clean_set(name: str, tmp_path: Path) -> None:
    shapes, code = EDITS[name]
    root = make(tmp_path / 'set', images={number: (image(number), [one]) for number, one in enumerate(shapes)})
    for out in followed(root, code, tmp_path):
        assert (out / 'images/05.jpg').read_bytes() == picture()


def test_swapped_sizes(tmp_path: Path) -> None:
    planted = {n: (image(n, 'width="48" height="64"'), [box('cat', 50, 5, 60, 40)]) for n in range(14)}
    root = make(tmp_path / 'set', images=planted)
    assert 'MG175' in scanned(root, tmp_path / 'scan.json')[1]
    (number,) = [number for number, of in edits(tmp_path / 'scan.json').items() if of == 'MG175']
    assert main(['fix', str(root), '--out', str(tmp_path / 'fixed'), '--edit', str(number)]) == 0
    assert scanned(tmp_path / 'fixed', tmp_path / 'again.json')[:2] == (0, {})


def test_one_file_without_its_images(tmp_path: Path) -> None:
    root = make(tmp_path / 'set', pictures=False, images={0: (image(0), [box('cat', 40, 5, 80, 30)])})
    (root / 'images').rmdir()
    file = root / 'annotations.xml'
    assert set(scanned(file, tmp_path / 'scan.json')[1]) == {'MG152'}
    assert main(['fix', str(file), '--out', str(tmp_path / 'fixed'), '--edit', '1']) == 0
    assert scanned(tmp_path / 'fixed/annotations.xml', tmp_path / 'scan.json')[:2] == (0, {})
    assert 'MG150' in scanned(file, tmp_path / 'scan.json', '--images', str(root))[1]


# ---- nothing wrong


@pytest.mark.parametrize('kind', KINDS)
def test_clean_sets(kind: str, tmp_path: Path) -> None:
    root = make(tmp_path / 'set', kind)
    text = (root / 'annotations.xml').read_text()
    (root / 'annotations.xml').write_text(
        text.replace('</annotations>', '<image id="99" name="99.jpg" width="64" height="48"/></annotations>')
    )
    (root / 'images/99.jpg').write_bytes(picture())  # nothing is in this image
    for target in (root, root / 'annotations.xml'):
        code, found, facts = scanned(target, tmp_path / 'scan.json')
        assert (code, found, facts['total'], facts['num_classes'], facts['files']) == (0, {}, 42, 3, 15)


def test_what_cvat_allows_is_no_fault(tmp_path: Path) -> None:
    parts = '<skeleton label="man"><points label="nose" points="5,5"></points></skeleton>'
    cuboid = '<cuboid label="cat" xtl1="5" ytl1="5"></cuboid>'
    shape = box('cat', 5, 5, 15, 15).replace('></box>', '><attribute name="age">7</attribute></box>')
    images = {0: (image(0), [parts, cuboid, '<tag label="sunny"></tag>', shape])}
    root = make(tmp_path / 'set', images=images, labels=(*NAMES, 'background', 'horse'))
    file = root / 'annotations.xml'
    nested = '<label><name>nose</name><type>points</type><parent>man</parent></label></labels>'
    file.write_text(file.read_text().replace('</labels>', nested).replace('task>', 'project>'))
    (root / 'images/default').mkdir()
    (root / 'images/00.jpg').rename(root / 'images/default/00.jpg')  # as projects are exported
    (root / 'more.xml').write_text(text_of([('name="01.png" width="9" height="9"', [])]))
    (root / 'images/01.png').write_bytes(picture(9, 9))
    code, found, facts = scanned(root, tmp_path / 'scan.json')
    assert (code, found, facts['total'], facts['class_names']) == (0, {}, 43, [*NAMES, 'horse'])


# ---- video

VIDEO_LABELS = ''.join(f'<label><name>{name}</name></label>' for name in NAMES)


def video(root: Path, *planted: str, track: str = 'cat', frames: int = 14) -> Path:
    """A cow in every frame, which goes after the tenth; ``planted``: of one more track, a line for each."""
    root.mkdir(parents=True, exist_ok=True)
    lines = [
        '<annotations>', f'<meta><task><labels>{VIDEO_LABELS}</labels>',
        '<original_size><width>64</width><height>48</height></original_size></task></meta>',
        '<track id="0" label="cow" source="manual">',
        *(at(n, box('', 5 + n, 5, 20 + n, 20), int(n >= 10)) for n in range(frames)), '</track>',
        f'<track id="1" label="{track}">', *planted, '</track>', '</annotations>',
    ]  # fmt: skip
    (root / 'annotations.xml').write_text('\n'.join(lines))
    return root


def at(frame: int, shape: str, outside: int = 0) -> str:
    """A shape as tracks have it: without a label, with its frame."""
    return re.sub(r'^<(\w+) label="\w*"', rf'<\1 frame="{frame}" keyframe="1" outside="{outside}"', shape)


def test_objects_of_a_video_are_counted_by_frame(tmp_path: Path) -> None:
    root = video(tmp_path / 'set', at(0, polygon('', '5,5', '9,5', '9,9')), at(3, box('', 1, 1, 9, 9)))
    code, found, facts = scanned(root, tmp_path / 'scan.json')
    assert (code, found, facts['files'], facts['histogram']) == (0, {}, 10, {'0': 2, '1': 10})
    (root / 'images').mkdir()
    for number in range(10):
        (root / f'images/frame_{number:06d}.PNG').write_bytes(picture(*((30, 20) if number == 4 else (64, 48))))
    found = scanned(root, tmp_path / 'scan.json')[1]
    assert 'frame_000004.PNG: 30 x 20 on disk, 64 x 48 in the annotations' in found['MG175']
    (root / 'images/frame_000004.PNG').unlink()
    assert 'frame_000004' in scanned(root, tmp_path / 'scan.json')[1]['MG150']


#: A name of a track, what is planted in it, and the code of the finding that goes.
VIDEO_EDITS: Dict[str, Tuple[str, str, str]] = {
    'case': ('Cat', at(2, box('', 5, 5, 15, 15)), 'MG177'),
    'a slip': ('doog', at(2, box('', 5, 5, 15, 15)), 'MG154'),
    'over the edge': ('cat', at(2, box('', 40, 5, 80, 30)), 'MG152'),
    'outside': ('cat', at(2, box('', 100, 5, 120, 30)), 'MG109'),
    'no numbers': ('cat', at(2, '<box label=""></box>'), 'MG176'),
}


@pytest.mark.parametrize('name', sorted(VIDEO_EDITS))
def test_every_edit_of_a_video_followed_leaves_a_clean_set(name: str, tmp_path: Path) -> None:
    track, planted, code = VIDEO_EDITS[name]
    more = [at(number, box('', 5, 5, 9, 9)) for number in range(4, 50)] if track == 'cat' else []
    root = video(tmp_path / 'set', planted, *more, track=track, frames=50)
    (root / 'more.xml').write_text(text_of([(image(n), sound('box', n)) for n in range(14)]))
    if code != 'MG177':
        said = json.dumps(scanned(root, tmp_path / 'scan.json')[2]['annotations'])
        assert 'annotations.xml: line 57' in said or code == 'MG154'
    for out in followed(root, code, tmp_path):
        text = (out / 'annotations.xml').read_text()
        assert 'outside="1"' in text
        assert f'label="{track}"' not in text or track == 'cat'


def test_a_shape_without_its_frame(tmp_path: Path) -> None:
    found = scanned(video(tmp_path, box('', 1, 1, 9, 9).replace('label="" ', '')), tmp_path / 'scan.json')[1]
    assert 'a shape of a track has no frame: annotations.xml: line 21' in found['MG176']


def test_classes_of_ones_own(tmp_path: Path) -> None:
    root = make(tmp_path / 'set', labels=())
    assert scanned(root, tmp_path / 'scan.json')[2]['class_names'] == list(NAMES)
    facts = scanned(root, tmp_path / 'scan.json', '--classes', 'dog,cat')[2]
    assert facts['annotations']['left_out_names'] == {'cow': 14}
    assert 'MG108' in scanned(root, tmp_path / 'scan.json', '--num-classes', '2')[1]


# ---- damaged

_ONE = text_of([(image(0), sound('box', 0))])


def _with(shape: str, attributes: str = image(0)) -> bytes:
    return text_of([(attributes, [shape])]).encode('utf-8', 'surrogatepass')


DAMAGED: Dict[str, bytes] = {
    'empty': b'',
    'blanks': b' \n\t ',
    'null bytes': bytes(100),
    'binary': bytes(range(256)) * 9,
    'a picture': picture(),
    **{f'the first {part} of 5': _ONE.encode()[: len(_ONE) * part // 5] for part in range(1, 5)},
    'latin-1': _with(box('caf\xe9', 5, 5, 9, 9)).decode().encode('latin-1'),
    'an encoding of nobody': _ONE.replace('utf-8', 'klingon').encode(),
    'another root': _ONE.replace('annotations>', 'annotation>').encode(),
    'an entity': text_of([(image(0), [])], head='<!DOCTYPE a [<!ENTITY b "c">]>').encode(),
    'a billion laughs': text_of(
        [(image(0), [box('&h;', 5, 5, 9, 9)])], head='<!DOCTYPE a [<!ENTITY g "ha"><!ENTITY h "&g;&g;&g;">]>'
    ).encode(),
    'nested': ('<annotations><meta/>' + '<image>' * 5000).encode(),
    'no size': _with(box('cat', 5, 5, 9, 9), 'name="a.jpg"'),
    'sizes of anything': _with(box('cat', 5, 5, 9, 9), 'name="a.jpg" width="-3" height="1e3"'),
    'sizes of other digits': _with(box('cat', 5, 5, 9, 9), 'name="a.jpg" width="\u0663" height="99999999999999999"'),
    'no name': _with(box('cat', 5, 5, 9, 9), 'width="9" height="9"'),
    'numbers of anything': _with('<box label="cat" xtl="a" ytl="" xbr="1e999" ybr="nan"></box>'),
    'a turn of anything': _with(box('cat', 5, 5, 9, 9, ' rotation="x"')),
    'points of anything': _with(polygon('cat', ';', ',', 'a,b', '1,2,3')),
    'a mask of anything': _with(mask('cat', 'x, -3, 1e3')),
    'a mask of nothing': _with(mask('cat', '')),
    'no label': _with('<box xtl="5" ytl="5" xbr="9" ybr="9"></box>'),
    'a shape of nobody': _with('<blob label="cat"></blob>'),
    'a track of nothing': b'<annotations><version>1.1</version><track id="0" label="cat"></track></annotations>',
    'a track without frames': f'<annotations><track>{box("cat", 5, 5, 9, 9)}</track></annotations>'.encode(),
    'a track without a label': b'<annotations><track><box frame="1"/></track></annotations>',
    'half a character': _with(box('\ud800', 5, 5, 9, 9)),
}  # fmt: skip


def test_damaged_files_do_not_end_the_scan(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    root = make(tmp_path / 'set', files=30)
    for number in range(len(DAMAGED) + 5):
        (root / f'aa{number:02d}.xml').write_text(text_of([(f'name="a{number}.jpg" width="64" height="48"', [])]))
    not_named, _ = check_damaged(root, root, DAMAGED, tmp_path, capsys, '.xml')
    assert not_named == ['a track of nothing']
    assert (tmp_path / 'fixed/annotations.xml').is_file()


@pytest.mark.parametrize('name', sorted(DAMAGED))
def test_a_damaged_file_alone_is_not_clean(name: str, tmp_path: Path) -> None:
    (tmp_path / 'annotations.xml').write_bytes(DAMAGED[name])
    assert main(['scan', str(tmp_path)]) in (1, 2)
    assert main(['scan', str(tmp_path / 'annotations.xml')]) in (1, 2)


@pytest.mark.parametrize('shape', ['', '<tag label="cat"></tag>', '<skeleton label="cat"></skeleton>'])
def test_a_set_without_a_shape_is_not_clean(shape: str, tmp_path: Path) -> None:
    (tmp_path / 'annotations.xml').write_bytes(_with(shape))
    assert main(['scan', str(tmp_path)]) == 2
