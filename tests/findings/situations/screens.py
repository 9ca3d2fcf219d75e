"""What every finding must keep on a screen: three sentences, and with them the cause and what is written first."""

from __future__ import annotations

import re
from typing import List

from mmguard.findings import Finding
from mmguard.findings.wording import finding_text, numbered
from mmguard.text.words import sentences

MOST = 3
#: A terminal breaks lines where it ends.
WIDE = 1 << 20
#: Begins of the rows that hold sentences; `seen:` and `in:` list values and files.
ROWS = re.compile(r'^(?:MG\d+ \w+|  do): (.*)$', re.MULTILINE)


def sentences_of(screen: str) -> List[str]:
    return [sentence for row in ROWS.findall(screen) for sentence in sentences(row)]


def fits_a_screen(finding: Finding) -> None:
    (finding,) = numbered([finding])
    screen, whole = finding_text(finding, WIDE, verbose=False), finding_text(finding, WIDE)
    assert 2 <= len(sentences_of(screen)) <= MOST, screen
    assert screen.startswith(f'{finding.code} {finding.severity}: {sentences(finding.cause)[0]}'), screen
    assert finding.evidence, screen
    assert f'\n  seen: {finding.evidence}' in screen, screen
    for edit in finding.edits[:1]:
        assert edit.question in screen, screen
        assert all(part in screen for part in [part for part in sentences(edit.text) if '`' in part][:1]), screen
        # What is written together stands in one sentence: else a part of it may be left out.
        written = [part for part in sentences(edit.text) if re.match(r'(Write|Add|And|With it)\b', part)]
        assert len(written) <= 1, edit.text
    hidden = set(whole.split('\n')) - set(screen.split('\n'))
    assert bool(hidden) == ('  more with --verbose: ' in screen), screen
