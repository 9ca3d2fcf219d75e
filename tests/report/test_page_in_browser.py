"""The page in a real browser, where there is one: no script runs, the names are seen, the pictures are drawn."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import List

import numpy as np
import pytest
from PIL import Image

from mmguard.diagnosis import CAUSES, LabelFacts, diagnose
from mmguard.report import Box, Section, WorstFile, write_scan_page

CHROMIUM = shutil.which('chromium') or shutil.which('chromium-browser') or shutil.which('google-chrome')

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason='needs chromium')]

NAMES = (
    '<script>document.title = "ran"</script>.png',
    '"><img src=x onerror="document.title=\'ran\'">.png',
    '</title></style><svg onload="document.title=\'ran\'">.png',
)


def browse(page: Path, profile: Path, *options: str) -> str:
    command: List[str] = [
        str(CHROMIUM), '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
        '--disable-background-networking', '--disable-component-update', '--disable-sync', '--hide-scrollbars',
        f'--user-data-dir={profile}', *options, page.as_uri(),
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.fixture
def hostile_page(tmp_path: Path) -> Path:
    label = np.zeros((60, 90), dtype=np.uint8)
    label[20:40, 30:60] = 9
    Image.fromarray(label).save(tmp_path / 'label.png')
    Image.new('RGB', (90, 60), (250, 250, 250)).save(tmp_path / 'image.png')
    facts = LabelFacts(
        values={9: 600}, num_classes=2, ignore_index=255, histogram={0: 4800, 9: 600}, total=5400,
        class_names=[NAMES[0], NAMES[1]], files=1, offending_files=1,
    )  # fmt: skip
    image = str(tmp_path / 'image.png')
    worst = [WorstFile(name, image, str(tmp_path / 'label.png'), values={9: 600}, skipped=600) for name in NAMES]
    worst.append(WorstFile(NAMES[1], image, None, [Box((5, 5, 50, 50), name, 'label') for name in NAMES], skipped=3))
    page = tmp_path / 'page.html'
    sections = [Section(name, facts, diagnose(facts, CAUSES), worst, list(NAMES)) for name in NAMES]
    write_scan_page(page, NAMES[2], sections)
    return page


def test_no_name_becomes_a_script(hostile_page: Path, tmp_path: Path) -> None:
    dom = browse(hostile_page, tmp_path / 'profile', '--dump-dom')
    assert '<title>mmguard: &lt;/title&gt;&lt;/style&gt;&lt;svg onload=' in dom
    assert '<script' not in dom
    assert '<img' not in dom
    assert '<svg onload' not in dom
    assert '&lt;script&gt;document.title' in dom


def test_a_script_that_does_get_in_would_not_run(hostile_page: Path, tmp_path: Path) -> None:
    """The page forbids scripts; taken out of it, the same script does run: so this test can fail."""
    content = hostile_page.read_text(encoding='utf-8')
    injected = content.replace('<main>', '<main><script>document.title = "ran"</script>')
    hostile_page.write_text(injected, encoding='utf-8')
    assert '<title>ran</title>' not in browse(hostile_page, tmp_path / 'one', '--dump-dom')
    start = injected.index('<meta http-equiv="Content-Security-Policy"')
    hostile_page.write_text(injected[:start] + injected[injected.index('>', start) + 1 :], encoding='utf-8')
    assert '<title>ran</title>' in browse(hostile_page, tmp_path / 'two', '--dump-dom')


@pytest.mark.parametrize('width', [390, 1100])
def test_the_pictures_are_drawn(hostile_page: Path, tmp_path: Path, width: int) -> None:
    shot = tmp_path / 'shot.png'
    # No window is narrower than 500 pixels; a frame is.
    frame = tmp_path / 'frame.html'
    frame.write_text(f'<body style="margin:0"><iframe src="page.html" width={width} height=9000 style="border:0">')
    browse(frame, tmp_path / 'profile', f'--window-size={max(width, 500)},9000', f'--screenshot={shot}')
    with Image.open(shot) as image:
        seen = np.asarray(image.convert('RGB')).astype(int)[:, :width]
    loud = np.abs(seen - (255, 0, 170)).sum(axis=2) < 40
    # Three files per section, photo and label each, a ninth of each picture is invalid.
    assert loud.sum() > 20_000
    # Nothing sticks out to the right: the last columns are paper (and the shadow of a card), from top to bottom.
    assert np.abs(seen[:, -4:] - seen[0, -1]).max() < 20
