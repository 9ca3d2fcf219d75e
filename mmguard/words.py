"""Numbers in sentences."""

from __future__ import annotations

_PLURALS = {'class': 'classes', 'px': 'px'}


def counted(number: int, noun: str) -> str:
    """A number and what it counts.

    Example:
        >>> counted(1, 'file'), counted(1204, 'file'), counted(2, 'class')
        ('1 file', '1,204 files', '2 classes')
    """
    return f'{number:,} {noun if number == 1 else _PLURALS.get(noun, f"{noun}s")}'
