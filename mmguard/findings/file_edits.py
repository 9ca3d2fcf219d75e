"""Edits of label files: commands of `mmguard fix`, which are tried on copies."""

from __future__ import annotations

import shlex
from typing import Any, Iterator, List, Mapping, Sequence

from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.rule import Facts, Rule
from mmguard.findings.views import annotations_of


def rewrite(
    rule: Rule, facts: Facts, title: str, applicability: str = ASKS, question: str = '', **options: Any
) -> Iterator[Edit]:
    """Yield `mmguard fix` of the annotation files in which a rule finds something, in all splits.

    Args:
        title (str): What it does: 'Leave these boxes out.'
        options: Of the command, as ``FixOptions`` has them.
    """
    if facts.options.get('suffix'):
        options['suffix'] = facts.options['suffix']
    yield from rewrite_files(facts, sources(rule, facts), title, applicability, question, **options)


def rewrite_files(
    facts: Facts, files: Sequence[str], title: str, applicability: str = ASKS, question: str = '', **options: Any
) -> Iterator[Edit]:
    """Yield `mmguard fix` of some annotation files."""
    if not files:
        return
    written = tuple((name, frozen(value)) for name, value in options.items())
    commands = tuple(
        command(path, 'fixed' if len(files) == 1 else f'fixed/{number}', options)
        for number, path in enumerate(files, 1)
    )
    changes = tuple((path, written) for path in files)
    notes = ('Then train with the copies instead of the originals.',)
    yield Edit(title, applicability, question, files=changes, commands=commands, notes=notes)


def sources(rule: Rule, facts: Facts) -> List[str]:
    """Return the annotation files in which a rule finds something, in all splits."""
    found = [
        split for split in (facts, *facts.others) if split.labels is not None and any(True for _ in rule.find(split))
    ]
    return list(dict.fromkeys(path for split in found if split.labels for path in annotations_of(split.labels).sources))


def command(path: str, out: str, options: Mapping[str, Any]) -> str:
    """Return a command of `mmguard fix`.

    Example:
        >>> command('my set/train.json', 'fixed', {'label_map': {1: 0, 2: 1}, 'no_crowds': True})
        "mmguard fix 'my set/train.json' --out fixed --label-map 1:0,2:1 --no-crowds"
    """
    words = ['mmguard', 'fix', path, '--out', out]
    for name, value in options.items():
        flag, text = f'--{name.replace("_", "-")}', _as_word(value)
        # A value that begins like an option must be in one word with its own.
        words += [flag] if value is True else [f'{flag}={text}'] if text.startswith('-') else [flag, text]
    return ' '.join(map(shlex.quote, words))


def _as_word(value: Any) -> str:
    if isinstance(value, Mapping):
        has_colours = any(isinstance(key, tuple) for key in value)
        return str(dict(value)) if has_colours else ','.join(f'{old}:{new}' for old, new in value.items())
    return ','.join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def frozen(value: Any) -> Any:
    """Return a value of an option as an immutable edit holds it."""
    if isinstance(value, Mapping):
        return tuple(value.items())
    return tuple(value) if isinstance(value, list) else value
