"""The bytes of a file: whole, in pieces, cut short, damaged."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from put_file import put

from mmguard.formats import volumes as volume
from mmguard.formats.volumes import CannotRead, Content

pytest.importorskip('nibabel')

DECODERS = ['zlib'] + (['libdeflate'] if volume.find_gzip_decoder() else [])


@pytest.fixture(params=DECODERS)
def decoder(request: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """With imagecodecs, and as where it is not installed."""
    if request.param == 'zlib':
        monkeypatch.setattr(volume, 'find_gzip_decoder', lambda: None)
    return request.param


def blocks_of(path: Path, begin: int, length: int, size: int) -> bytes:
    with open(path, 'rb') as file:
        pieces = [bytes(block) for block in Content(str(path), file).read_blocks(begin, length, size)]
    assert all(len(piece) == size for piece in pieces[:-1])
    return b''.join(pieces)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    length=st.integers(1, 300_000),
    begin=st.integers(0, 1000),
    size=st.integers(1000, 200_000),
    packed=st.sampled_from(['no', 'gzip', 'members', 'padded']),
)
def test_blocks_are_the_bytes(length: int, begin: int, size: int, packed: str, decoder: str, tmp_path: Path) -> None:
    whole = np.random.default_rng(length).integers(0, 4, begin + length, dtype=np.uint8).tobytes()
    half = len(whole) // 2
    stored = {
        'no': whole,
        'gzip': gzip.compress(whole),
        'members': gzip.compress(whole[:half]) + gzip.compress(whole[half:]),
        'padded': gzip.compress(whole) + b'\0' * 512,
    }[packed]
    path = put(tmp_path / 'a', stored)
    assert blocks_of(path, begin, length, size) == whole[begin:]
    with open(path, 'rb') as file:
        found = Content(str(path), file)
        assert found.read_head(16) == whole[:16]
        found.check(begin, length)


@pytest.mark.parametrize('packed', [False, True])
@pytest.mark.parametrize('share', [0.1, 0.5, 0.99])
def test_a_file_that_was_cut_short_says_what_is_missing(
    share: float, packed: bool, decoder: str, tmp_path: Path
) -> None:
    whole = np.random.default_rng(0).integers(0, 256, 400_000, dtype=np.uint8).tobytes()
    stored = gzip.compress(whole) if packed else whole
    path = put(tmp_path / 'a', stored[: int(len(stored) * share)])
    for ask in (lambda c: c.check(352, 399_648), lambda c: list(c.read_blocks(352, 399_648, 1000))):
        with open(path, 'rb') as file, pytest.raises(CannotRead) as reported:
            ask(Content(str(path), file))
        assert reported.value.fault == 'truncated'
        assert reported.value.missing == pytest.approx((1 - share) * 400_000, abs=70_000)


def test_one_wrong_bit_is_found(decoder: str, tmp_path: Path) -> None:
    """Wherever in the file it is: gzip's checksum stands at its end."""
    whole = np.random.default_rng(0).integers(0, 8, 200_000, dtype=np.uint8).tobytes()
    stored = gzip.compress(whole)
    path = tmp_path / 'a'
    for place in (2000, len(stored) // 2, len(stored) - 6, len(stored) - 1):
        torn = bytearray(stored)
        torn[place] ^= 4
        path.write_bytes(bytes(torn))
        for ask in (lambda c: c.check(352, 199_648), lambda c: list(c.read_blocks(352, 199_648, 1000))):
            with open(path, 'rb') as file, pytest.raises(CannotRead) as reported:
                ask(Content(str(path), file))
            assert reported.value.fault in ('damaged', 'truncated')


def test_a_checksum_that_is_missing_is_reported(decoder: str, tmp_path: Path) -> None:
    whole = bytes(range(256)) * 1000
    (tmp_path / 'a').write_bytes(gzip.compress(whole)[:-4])
    with open(tmp_path / 'a', 'rb') as file, pytest.raises(CannotRead) as reported:
        Content(str(tmp_path / 'a'), file).check(0, len(whole))
    assert (reported.value.fault, reported.value.missing) == ('truncated', 0)


def test_what_is_no_file_or_has_no_bytes_is_reported(tmp_path: Path) -> None:
    (tmp_path / 'a').touch()
    with open(tmp_path / 'a', 'rb') as file, pytest.raises(CannotRead) as reported:
        Content(str(tmp_path / 'a'), file)
    assert reported.value.fault == 'empty'
