"""Explanations as text and as JSON."""

from __future__ import annotations

import re
import shlex
import textwrap
from typing import Any, Dict, List, Mapping, Optional

from mmguard.findings.finding import Finding
from mmguard.findings.signatures import Signature, choose, read_signatures
from mmguard.text import quantity, visible
from mmguard.tools.explain.explained import CONFIRMED, POSSIBLE, SUPPORTED, Explanation, Weighed
from mmguard.tools.explain.troubles import Piece, Raised, Trouble
from mmguard.version import __version__

#: Number of possible causes on the first screen if more than one would be left.
_POSSIBLE = 3
_TRUE_LINE = (
    'The line that Python shows is only where it waited for the device. The true one: the same command with '
    '`CUDA_LAUNCH_BLOCKING=1`, or the failing batch on the CPU (device="cpu"), where the same fault is an IndexError '
    'with the label in it; `TORCH_USE_CUDA_DSA=1` works only where torch was built with it. After it, the process '
    'can no longer use the device: start again.'
)
_TRUE_LINE_IN_BRIEF = 'the same command with `CUDA_LAUNCH_BLOCKING=1`; what Python shows is a later one'
_NO_CAUSE = 'None of the known causes fits what the log, the config and the labels show.'
_UNDECIDED = 'The log does not decide between these causes. See which of them applies:'
#: Number of lines of a message, and of other errors in a log, that are shown.
_MESSAGE, _OTHERS = 4, 6
#: Maximum number of characters of a quoted line.
_QUOTE = 240


def as_text(
    found: Explanation, name: str = '', config: Optional[str] = None, width: int = 100, verbose: bool = True
) -> str:
    """Return the error, its meaning, its causes in order (brief: the most likely, in three sentences), and advice."""
    signature, error = found.signature, _build_error_rows(found, name, width)
    if signature is None:
        head = f'not known: none of {len(read_signatures())} signatures matches'
        return '\n'.join([head, '', *error, '', *_build_unknown_rows(found, width), *_build_other_rows(found, width)])
    rows = [f'{signature.code}  {signature.title}', '', *error, '']
    rows += (_build_all_rows if verbose else _build_first_rows)(found, signature, width)
    rows += ['', *_wrap(f'next: {_command(found.command, config)}', width, '      ')]
    if config is None and 'mmguard scan CONFIG' in found.command:
        rows.append('      without a config: mmguard scan FOLDER --num-classes N')
    rows += _build_other_rows(found, width)
    for finding in found.more[: 3 if verbose else 1]:
        rows += _wrap(f'also found: {finding.code} {visible(finding.title)}', width, '  ')
    return '\n'.join(rows)


def _build_all_rows(found: Explanation, signature: Signature, width: int) -> List[str]:
    rows = _wrap(signature.meaning, width)
    if found.is_asynchronous:
        rows += ['', *_wrap(_TRUE_LINE, width)]
    rows += ['', 'Causes:' if found.causes else _NO_CAUSE]
    shown: Dict[Any, int] = {}
    for number, weighed in enumerate(found.causes, 1):
        rows += _build_cause_rows(number, weighed, width, shown)
    return rows


def _build_first_rows(found: Explanation, signature: Signature, width: int) -> List[str]:
    """Return the confirmed causes, else the supported ones, else the undecided ones; and the number of other causes."""
    first = found.causes[0] if found.causes else None
    rows = [] if _is_confirmed(found) else _wrap(signature.meaning, width, '  ')
    shown = 1
    if first is None:
        rows.append(_NO_CAUSE)
    elif _is_confirmed(found):
        # An error without a listed cause does not hide a confirmed one.
        shown = 2 if first.cause.key == 'unforeseen' and any(one.findings for one in found.causes[1:2]) else 1
        rows += [row for one in found.causes[:shown] for row in _build_finding_rows(one.findings[0], width)]
    elif first.evidence is not None:
        rows += _wrap(f'likely cause: {first.cause.text} [the log points to it]', width, '  ')
        rows += _build_evidence_rows(first.evidence, width)
        rows += _build_next_rows(first, width)
    else:
        shown = len(found.causes) if len(found.causes) <= _POSSIBLE + 1 else _POSSIBLE
        rows.append(_UNDECIDED if shown > 1 else 'possible cause:')
        rows += [row for one in found.causes[:shown] for row in _build_possible_rows(one, '- ', width)]
    rows += _wrap(f'true line: {_TRUE_LINE_IN_BRIEF}', width, '  ') if found.is_asynchronous else []
    left = len(found.causes) - shown
    return [*rows, f'more with --verbose: {quantity(left, "other cause") if left > 0 else "everything known about it"}']


def _build_finding_rows(finding: Finding, width: int, indent: str = '') -> List[str]:
    texts = {'found': f'{finding.code} {visible(finding.title)}', 'do': visible(finding.next_step)}
    return _label_texts(texts, width, indent)


def _build_evidence_rows(evidence: Piece, width: int, indent: str = '') -> List[str]:
    return _label_texts({f'line {evidence.line:,}': _show(evidence.text.strip()[:_QUOTE])}, width, indent)


def _build_possible_rows(weighed: Weighed, mark: str, width: int) -> List[str]:
    """Return the rows of an unsupported cause: the deciding observation comes before the cause."""
    texts = {'look': weighed.cause.look, 'cause': weighed.cause.text, 'do': weighed.advice}
    first, *more = _label_texts(texts, width, ' ' * len(mark))
    return [f'{mark}{first.lstrip()}', *more]


def _build_next_rows(weighed: Weighed, width: int, indent: str = '') -> List[str]:
    return _label_texts({'look': weighed.cause.look, 'do': weighed.advice}, width, indent)


def _label_texts(texts: Mapping[str, str], width: int, indent: str) -> List[str]:
    """Return the texts with their labels, without empty ones."""
    lines = [f'{indent}{label}: {text}' for label, text in texts.items() if text]
    return [row for line in lines for row in _wrap(line, width, f'{indent}  ')]


def _is_confirmed(found: Explanation) -> bool:
    return bool(found.causes) and found.causes[0].standing == CONFIRMED and bool(found.causes[0].findings)


def advise(found: Explanation) -> str:
    """Return the advice on one line: about a cause only if something supports it, else the deciding observations."""
    first = found.causes[0] if found.causes else None
    if first is None:
        return _NO_CAUSE
    if first.standing == POSSIBLE and len(found.causes) > 1:
        return ' '.join([_UNDECIDED, *(f'{one.cause.look} ({one.cause.text})' for one in found.causes)])
    return ' '.join(filter(None, (first.cause.text, first.cause.look, first.advice)))


def signature_text(signature: Signature) -> str:
    """Return the output of `mmguard explain CODE` for a signature."""
    rows = [f'{signature.code}  {signature.title}', '', signature.meaning, '', 'Causes, the most frequent first:']
    for number, cause in enumerate(signature.causes, 1):
        look = f' To see whether it is this one: {cause.look}' if cause.look else ''
        advice = ''.join(f' {_label(name)}: {text}' for name, text in cause.advice.items())
        codes = f' ({", ".join(cause.codes)})' if cause.codes else ''
        rows.append(f'{number}. {cause.text}{look}{advice}{codes}')
    return '\n'.join([*rows, '', f'Next: {choose(signature.command, "")}'])


def _label(framework: str) -> str:
    return 'To do' if framework == 'torch' else f'With {framework}'


def as_json(found: Optional[Explanation], name: str) -> Dict[str, Any]:
    """Return the explanation as plain data for programs; ``'error': None`` without an error."""
    record: Dict[str, Any] = {'mmguard': __version__, 'log': name, 'error': None}
    if found is None:
        return record
    record['error'] = _convert_error(found.trouble, found.raised, found.signature)
    record['place'] = str(found.place) if found.place else None
    record['own_place'] = str(found.own_place) if found.own_place else None
    record['kernel'] = found.kernel or None
    record['asynchronous'] = found.is_asynchronous
    record['ranks'] = found.ranks
    if found.signature is not None:
        record['meaning'] = found.signature.meaning
        record['command'] = found.command
    record['causes'] = [
        {
            'key': weighed.cause.key,
            'cause': weighed.cause.text,
            'look': weighed.cause.look,
            'advice': weighed.advice,
            'codes': list(weighed.cause.codes),
            'standing': weighed.standing,
            'evidence': {'line': weighed.evidence.line, 'text': weighed.evidence.text} if weighed.evidence else None,
            'findings': [finding.code for finding in weighed.findings],
        }
        for weighed in found.causes
    ]
    record['refuted'] = [cause.key for cause in found.refuted]
    record['framework'] = found.framework or None
    record['others'] = [_convert_error(*other) for other in found.others]
    record['more'] = [finding.code for finding in found.more]
    return record


def _convert_error(trouble: Trouble, raised: Raised, signature: Optional[Signature]) -> Dict[str, Any]:
    return {
        'code': signature.code if signature else None,
        'type': raised.kind or None,
        'message': raised.message,
        'line': trouble.line,
        'rank': int(trouble.rank) if trouble.rank else None,
        'times': trouble.times,
    }


def _build_error_rows(found: Explanation, name: str, width: int) -> List[str]:
    lines = found.raised.said.strip().split('\n')
    named = [line for line in lines[_MESSAGE:] if re.search('did not receive grad', line)]
    shown = [_show(line)[:400] for line in lines[:_MESSAGE] + named]
    rows = [f'error: {shown[0]}', *(f'       {line}' for line in shown[1:])]
    if found.kernel:
        rows.append(f'kernel: {visible(found.kernel)}')
    rows += [row for line in found.ranks for row in _wrap(visible(line), width, '       ')]
    where = f'line {found.trouble.line:,} of {visible(name)}' if name else f'line {found.trouble.line:,}'
    rank = f', rank {found.trouble.rank}' if found.trouble.rank else ''
    times = f', {quantity(found.trouble.times, "time")}' if found.trouble.times > 1 else ''
    rows.append(f'in: {where}{rank}{times}')
    at = 'noticed at' if found.is_asynchronous else 'at'
    if found.place:
        rows.append(f'{at}: {visible(str(found.place))}')
    if found.own_place and found.own_place != found.place:
        rows.append(f'your line: {visible(str(found.own_place))}')
    return rows


def _build_cause_rows(number: int, weighed: Weighed, width: int, shown: Dict[Any, int]) -> List[str]:
    """Return the rows of a cause; ``shown`` holds the numbers of findings, each of which is printed once."""
    if weighed.standing == POSSIBLE:
        return _build_possible_rows(weighed, f'{number}. ', width)
    tag = ' [the log points to it]' if weighed.standing == SUPPORTED else ''
    rows = _wrap(f'{number}. {weighed.cause.text}{tag}', width, '   ')
    if weighed.evidence is not None:
        rows += _build_evidence_rows(weighed.evidence, width, '   ')
    for finding in weighed.findings[:3]:
        first = shown.setdefault((finding.code, finding.title), number)
        rows += (
            _build_finding_rows(finding, width, '   ')
            if first == number
            else [f'   found: {finding.code}, as under {first}']
        )
    return rows if weighed.findings else rows + _build_next_rows(weighed, width, '   ')


def _build_unknown_rows(found: Explanation, width: int) -> List[str]:
    place = found.place
    package = re.search(r'(?:site|dist)-packages[/\\](\w+)', place.file) if place else None
    whose = f'the issue tracker of {package.group(1)}, where it was raised' if package else 'whoever wrote that line'
    return _wrap(
        f'If a label is the cause, `mmguard scan CONFIG` finds it. Else send it to {whose}: the traceback from its '
        f'first line, the config, and what `mmguard env` prints. If you find the cause, send the same to the issue '
        f'tracker of mmguard, so that the error is known.',
        width,
    )


def _build_other_rows(found: Explanation, width: int) -> List[str]:
    rows: List[str] = []
    said = set()
    for trouble, raised, signature in found.others:
        first = _show(raised.said.strip().split('\n')[0])[:160]
        rank = f'rank {trouble.rank}, ' if trouble.rank else ''
        if (rank, first) not in said:
            rows.append(f'  {rank}line {trouble.line:,}: {first}{f" ({signature.code})" if signature else ""}')
        said.add((rank, first))
    if not rows:
        return []
    more = [f'  and {len(rows) - _OTHERS:,} more'] if len(rows) > _OTHERS else []
    return ['', 'Also in the log (it follows, or came later):', *rows[:_OTHERS], *more]


def _show(line: str) -> str:
    """Format a line of a log for printing: tabs as blanks, other control characters escaped."""
    return visible(line.replace('\t', '  '))


def _command(command: str, config: Optional[str]) -> str:
    return command if config is None else re.sub(r'\bCONFIG\b', lambda _: shlex.quote(config), command)


def _wrap(text: str, width: int, indent: str = '') -> List[str]:
    return textwrap.wrap(text, max(width, 40), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
