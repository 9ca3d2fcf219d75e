"""What a signature is: the words by which an error is known, and what they mean."""

from __future__ import annotations

from typing import NamedTuple, Tuple

#: How near an error stands to the cause. A kernel's assert names what was wrong; most exceptions come up where it was
#: noticed; what ended a process from outside says who, not why; the last is said where another process is gone.
KERNEL, RAISED, ENDED, FOLLOWS = range(4)


class Cause(NamedTuple):
    """One thing that may have brought an error about.

    Attributes:
        text (str): It, with what to write where that is the same for everybody.
        codes (tuple[str]): Findings that confirm it.
        clue (str): A pattern; where the error, its traceback or the log beside it have it, the cause goes up.
        tell (str): How to see whether it is this one.
        against (str): A pattern; where it is found, the clue is none.
        unless (str): A pattern; where it is found, it is not this one.
    """

    text: str
    codes: Tuple[str, ...] = ()
    clue: str = ''
    tell: str = ''
    against: str = ''
    unless: str = ''


class Signature(NamedTuple):
    """An error by its words.

    Attributes:
        code (str): Stable, ``MG4xx``; it is never given to another.
        summary (str): What the error says, one line.
        pattern (str): What is the same in all versions; searched in ``Type: message``, over several lines.
        meaning (str): What it means.
        causes (tuple[Cause]): The likeliest first.
        command (str): The command that decides; CONFIG, DATA and WORK_DIR stand for the user's.
        place (str): A pattern that a line of the traceback has as well; empty: any.
        bare (bool): Whether it also stands in logs without an exception, a line on its own.
        stage (int): How near it stands to the cause.
    """

    code: str
    summary: str
    pattern: str
    meaning: str
    causes: Tuple[Cause, ...]
    command: str
    place: str = ''
    bare: bool = False
    stage: int = RAISED
