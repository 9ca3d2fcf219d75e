"""No name of a data set becomes a path outside of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmguard.files.containment import OutsideError, check_name, find_inside, is_really_inside, resolve_inside

#: Names that lead elsewhere on this system or on another.
OUTSIDE = [
    '..',
    '../a.png',
    'a/../../b.png',
    './../a.png',
    '/etc/passwd',
    '//host/share/a.png',
    r'..\a.png',
    r'a\..\..\b.png',
    r'C:\a.png',
    'c:/a.png',
    'C:a.png',
    r'\\host\share\a.png',
    r'\\?\C:\a.png',
    r'\a.png',
    'a\0.png',
    'a\n.png',
    '\x1b[31ma.png',
    'a\x7f.png',
]
PARTS = st.sampled_from(['..', '.', '', 'a', 'b.png', 'C:', '/', '\\', '~', '\0', '\n', '://', 'é', '\udcff', ' '])
NAMES = st.one_of(
    st.text(max_size=12), st.lists(PARTS, max_size=8).map('/'.join), st.lists(PARTS, max_size=8).map(''.join)
)
ROOTS = st.sampled_from(['data', 'data/coco', '../data', '.', '/data', '/data/coco/', '/'])


@pytest.mark.parametrize('root', ['data', '/data/coco'])
@pytest.mark.parametrize('name', OUTSIDE)
def test_a_name_that_leads_out_of_its_folder_is_refused(root: str, name: str) -> None:
    with pytest.raises(OutsideError):
        resolve_inside(root, name)
    assert find_inside(root, name) == ''


@given(ROOTS, NAMES)
def test_whatever_a_name_holds_its_path_is_inside(root: str, name: str) -> None:
    path = find_inside(root, name)
    if path:
        far = '://' in root
        base, place = (root, path) if far else (os.path.abspath(root), os.path.abspath(path))
        assert place == base or place.startswith(base.rstrip('/') + '/')
        assert '..' not in place[len(base) :].split('/')
        assert not any(ord(letter) < 32 for letter in path)


@given(ROOTS, st.lists(st.sampled_from(['a', 'b c', '...', 'train2017', 'é.png', '12:30:05.png', '~']), min_size=1))
def test_an_ordinary_name_is_joined_to_its_folder(root: str, parts: list) -> None:
    path = resolve_inside(root, '/'.join(parts))
    assert path == ('/'.join([root, *parts]) if '://' in root else os.path.normpath(os.path.join(root, *parts)))


def test_an_absolute_path_in_its_folder_is_inside_also_where_the_folder_was_named_by_a_link(tmp_path: Path) -> None:
    (tmp_path / 'disk').mkdir()
    (tmp_path / 'link').symlink_to('disk')
    inside = str(tmp_path / 'disk' / 'a.png')
    assert resolve_inside(str(tmp_path / 'link'), inside) == inside
    assert find_inside(str(tmp_path / 'disk'), str(tmp_path / 'disk2' / 'a.png')) == ''
    assert find_inside(str(tmp_path / 'disk'), f'{tmp_path}/disk/../a.png') == ''


def test_a_wider_folder_may_be_allowed_and_no_wider_one() -> None:
    assert resolve_inside('x/labels', '../images/a.png', 'x') == 'x/images/a.png'
    assert find_inside('x/labels', '../../a.png', 'x') == ''
    assert find_inside('x/labels', r'..\..\a.png', 'x') == ''


def test_settings_lead_anywhere_on_this_machine_and_to_no_host() -> None:
    for name in ('/bigdisk/images', '../images', '~/images'):
        check_name(name)
    for name in (r'\\host\images', '//host/images', 'D:/images', 'a\0b'):
        with pytest.raises(OutsideError):
            check_name(name)


def test_links_are_followed_to_tell_what_is_really_inside(tmp_path: Path) -> None:
    (tmp_path / 'set').mkdir()
    (tmp_path / 'key').write_text('')
    (tmp_path / 'set' / 'own').write_text('')
    (tmp_path / 'set' / 'a').symlink_to('own')
    (tmp_path / 'set' / 'b').symlink_to('../key')
    (tmp_path / 'set2').mkdir()
    inside = [
        is_really_inside(str(tmp_path / name), str(tmp_path / 'set')) for name in ('set/a', 'set/b', 'set', 'set2')
    ]
    assert inside == [True, False, True, False]
