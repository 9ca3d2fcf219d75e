"""The page in a real browser, where there is one: no name runs a script, a button copies, the pictures are drawn."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Iterator, List

import numpy as np
import pytest
from PIL import Image

from mmguard.findings import Finding, LabelFacts, diagnose
from mmguard.findings.edits import Edit
from mmguard.tools.report.html import write_scan_page
from mmguard.tools.report.page import Section, WorstFile

CHROMIUM = shutil.which('chromium') or shutil.which('chromium-browser') or shutil.which('google-chrome')

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason='needs chromium')]

NAMES = (
    '<script>document.title = "ran"</script>.png',
    '"><img src=x onerror="document.title=\'ran\'">.png',
    '</title></style><svg onload="document.title=\'ran\'">.png',
)


def command_of(page: Path, profile: Path, *options: str) -> List[str]:
    return [
        str(CHROMIUM), '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
        '--disable-background-networking', '--disable-component-update', '--disable-sync', '--hide-scrollbars',
        f'--user-data-dir={profile}', *options, page.as_uri(),
    ]  # fmt: skip


def browse(page: Path, profile: Path, *options: str) -> str:
    command = command_of(page, profile, *options)
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


class Tab:
    """A page that stays open, driven over a pipe as DevTools drive it: file 3 is read by the browser, 4 written."""

    def __init__(self, page: Path, profile: Path) -> None:
        to_read, self._to = os.pipe()
        self._from, to_write = os.pipe()
        # Far from 3 and 4, so that neither is closed by the other being put into its place.
        import fcntl

        far = [fcntl.fcntl(end, fcntl.F_DUPFD, 50) for end in (to_read, to_write)]
        command = command_of(page, profile, '--remote-debugging-pipe')
        moved = ['bash', '-c', f'exec "$@" 3<&{far[0]} 4>&{far[1]}', 'bash', *command]
        self._process = subprocess.Popen(moved, pass_fds=far, stderr=subprocess.DEVNULL)
        for end in (to_read, to_write, *far):
            os.close(end)
        self._number, self._left = 0, b''
        self._session: Any = {}
        targets = self.call('Target.getTargets')['targetInfos']
        (target,) = [one['targetId'] for one in targets if one['type'] == 'page']
        self._session = {'sessionId': self.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']}
        while self.value('document.readyState + location.href') != f'complete{page.as_uri()}':
            pass

    def call(self, method: str, **params: Any) -> Any:
        self._number += 1
        message = dict(id=self._number, method=method, params=params, **self._session)
        os.write(self._to, json.dumps(message).encode() + b'\0')
        return next(answer for answer in self._answers() if answer.get('id') == self._number)['result']

    def _answers(self) -> Iterator[Any]:
        while True:
            while b'\0' not in self._left:
                self._left += os.read(self._from, 1 << 16)
            line, _, self._left = self._left.partition(b'\0')
            yield json.loads(line)

    def value(self, expression: str) -> Any:
        """Of an expression, which the policy of the page does not forbid here."""
        answer = self.call('Runtime.evaluate', expression=expression, awaitPromise=True, returnByValue=True)
        return answer['result'].get('value')

    def click(self, selector: str) -> None:
        """Clicks into the middle of an element, as a hand does."""
        where = f'document.querySelector({selector!r})'
        self.value(f'{where}.scrollIntoView({{block: "center"}})')
        box = self.value(
            f'(() => {{ const b = {where}.getBoundingClientRect(); return [b.x, b.y, b.width, b.height] }})()'
        )
        place = dict(x=box[0] + box[2] / 2, y=box[1] + box[3] / 2, button='left', clickCount=1)
        for kind in ('mousePressed', 'mouseReleased'):
            self.call('Input.dispatchMouseEvent', type=kind, **place)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=30)
        os.close(self._to)
        os.close(self._from)


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
    worst = [WorstFile(name, str(tmp_path / 'label.png'), image, values={9: 600}, skipped=600) for name in NAMES]
    worst.append(WorstFile(NAMES[1], skipped=3))
    page = tmp_path / 'page.html'
    sections = [Section(name, facts, diagnose(facts), worst, list(NAMES)) for name in NAMES]
    write_scan_page(page, NAMES[2], sections)
    return page


def test_no_name_becomes_a_script(hostile_page: Path, tmp_path: Path) -> None:
    dom = browse(hostile_page, tmp_path / 'profile', '--dump-dom')
    assert '<title>mmguard: &lt;/title&gt;&lt;/style&gt;&lt;svg onload=' in dom
    assert dom.count('<script') == 1
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


@pytest.mark.parametrize('allowed', [True, False])
def test_a_button_copies_its_line_or_at_least_selects_it(tmp_path: Path, allowed: bool) -> None:
    lines = ['first=1', 'label_map={255: 1}  # "quoted" <b>']
    facts = LabelFacts(num_classes=2)
    edits = tuple(Edit(f'Write `{line}`') for line in lines)
    page = tmp_path / 'page.html'
    write_scan_page(page, 't', [Section('train', facts, [Finding('MG107', 'c', 's', 'a', 0.5, edits=edits)])])
    tab = Tab(page, tmp_path / 'profile')
    try:
        if not allowed:
            tab.value('navigator.clipboard.writeText = () => Promise.reject(); document.execCommand = () => false')
        assert tab.value('document.querySelectorAll(".copy").length') == 2
        tab.click('dd:last-child .copy')
        seen = tab.value(
            'new Promise(done => setTimeout(() => done(document.querySelectorAll(".copy")[1].textContent), 300))'
        )
        assert seen == ('Copied' if allowed else 'Selected')
        assert tab.value('getSelection().toString()') == lines[1]
        if allowed:
            tab.call('Browser.grantPermissions', permissions=['clipboardReadWrite'])
            assert tab.value('navigator.clipboard.readText()') == lines[1]
    finally:
        tab.close()


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
