"""A traceback in a log, read line by line, and the patterns of lines that end it."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Optional, Pattern

from mmguard.findings.signatures import read_signatures
from mmguard.findings.signatures.signature import SIGN
from mmguard.tools.explain.troubles import Frame, Line, Raised, Trouble

#: Number of frames, and of lines of a message, that are kept.
_FRAMES, _MESSAGE_LINES = 120, 40
PROGRESS = re.compile(
    r'\b(?:[Ee]poch|[Ii]ter(?:ation)?|[Ss]tep|train_loss|val_loss)\b\W{0,3}(?:\((?:train|val|test)\))?\W*\d'
    r'|\d(?:it/s|s/it)\b|\bloss: -?\d'
)
HEADER = re.compile(r'Traceback \(most recent call last\)')
IGNORED = re.compile(r'^(?:Exception ignored in|--- Logging error ---)')
#: An exception without a traceback.
LONE = re.compile(r'^(?:E\s+)?(?P<kind>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt)): ?(?P<message>.*)$')
_NOTEBOOK_HEADER = re.compile(r'^([A-Za-z_][\w.]*)\s{2,}Traceback \(most recent call last\)')
_FRAME = re.compile(r'^\W{0,4}\s*File "(.+?)", line (\d+)(?:, in (.+))?$')
_NOTEBOOK_FRAME = re.compile(
    r'^(?:File )?([~/\w.<][^:]*?\.py|<ipython[^>]*>|Cell In\s?\[\d+\]|In \[\d+\])'
    r'(?:[:,] ?(?:line )?(\d+))?(?:,? in ([\w.<>]+).*)?$'
)
_ARROW = re.compile(r'^-+> ?(\d+) (.*)$')
_RAISED = re.compile(r'^\W{0,3}([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?::(?:\s(.*))?)?$')
_JOINED = re.compile(
    r'During handling of the above exception|The above exception was the direct cause|Original Traceback'
    r'|terminated with the following error'
)


@lru_cache(maxsize=None)
def bare_pattern(signs: bool = False) -> Pattern[str]:
    """Return the pattern of the signatures that need no exception: errors, or signs."""
    bare = [signature for signature in read_signatures() if signature.bare]
    patterns = dict.fromkeys(signature.pattern for signature in bare if (signature.stage == SIGN) is signs)
    return re.compile('|'.join(f'(?:{pattern})' for pattern in patterns), re.MULTILINE)


class OpenTraceback:
    """A traceback that is being read."""

    def __init__(self, trouble: Trouble, line: Line, is_raised: bool = False) -> None:
        self.trouble = trouble
        self.is_dated = line.is_dated
        self.is_raised = is_raised
        self.is_joined = False
        self.lines = self.blank = self.number = 0
        if not is_raised:
            self._begin(line.text)

    def take(self, line: Line, number: int) -> bool:
        """Take a line; return ``False`` if it is not part of this traceback."""
        text = line.text
        self.number = number
        if line.is_dated and not self.is_dated:
            return not self.is_raised  # a logger of another thread
        if HEADER.search(text):
            if self.is_raised and not self.is_joined and 'Original Traceback' not in text:
                return False
            # The previous one did not end: a chain, or processes without marks that write at the same time.
            self._begin(text)
            return True
        if _JOINED.search(text):
            self.is_joined = True
            return True
        return self._add_to_message(text) if self.is_raised else self._add_to_frames(text)

    def _begin(self, text: str) -> None:
        named = _NOTEBOOK_HEADER.match(text)
        self.trouble.chain.append(Raised(named.group(1) if named else ''))
        self.is_raised = self.is_joined = False
        self.lines = self.blank = 0

    def _add_to_frames(self, text: str) -> bool:
        raised = self.trouble.chain[-1]
        frames = raised.frames
        frame = self._read_frame(text)
        if frame is not None:
            del frames[_FRAMES - 1 :]  # the innermost frames matter most
            frames.append(frame)
            return True
        arrow = _ARROW.match(text)
        if arrow and frames:
            frames[-1] = frames[-1]._replace(number=int(arrow.group(1)), code=arrow.group(2).strip())
            return True
        if text[:1] in (' ', '\t', '', '|', '│', '╭', '╰', '-', '+', '^', '~'):
            code = text.strip(' \t|│')
            if frames and code and not frames[-1].code and code[0] not in '^~':
                frames[-1] = frames[-1]._replace(code=code)
            self.lines += 1
            return self.lines < 4000
        found = _RAISED.match(text)
        if found and (found.group(1) == raised.kind or _is_type(found.group(1))):
            raised.kind, raised.message = found.group(1), (found.group(2) or '').strip()
            raised.lines = [self.number]
            self.is_raised = True
            self.lines = 0
        self.lines += 1
        return self.lines < 400

    def _read_frame(self, text: str) -> Optional[Frame]:
        found = _FRAME.match(text.rstrip()) or _NOTEBOOK_FRAME.match(text)
        if not found:
            return None
        file, line, name = found.groups()
        return Frame(file, int(line or 0), name or '<module>', line=self.number, text=text.strip())

    def _add_to_message(self, text: str) -> bool:
        """Add a line to a message; return ``False`` if the message ended before it."""
        if self.is_joined:
            return not text.strip() or self.lines < _MESSAGE_LINES
        if not text.strip():
            self.blank += 1
            return self.blank < 3
        self.lines += 1
        raised = self.trouble.chain[-1]
        is_other = PROGRESS.search(text) or IGNORED.match(text) or bare_pattern().search(text) or LONE.match(text)
        if self.lines > _MESSAGE_LINES or (is_other and not raised.message.endswith(':')):
            return False
        if self.blank and not text[:1].isspace() and self.lines > 12:
            return False
        raised.message = f'{raised.message}\n{text}'[:8000]
        raised.lines.append(self.number)
        return True


def _is_type(name: str) -> bool:
    last = name.rpartition('.')[2]
    return '.' in name or last[:1].isupper() or last == 'error'
