"""Explanations as text and as JSON."""

from __future__ import annotations

import re
import shlex
from typing import Any, Dict, List, Mapping, Optional, Sequence

from mmguard.commands.explain.explanation import CONFIRMED, POSSIBLE, SUPPORTED, Explanation, RankedCause
from mmguard.commands.explain.log_errors import LogError, LoggedException, Piece
from mmguard.findings.finding import ERROR, Finding
from mmguard.findings.signatures import SCAN, Signature, choose, get_lineage, read_signatures
from mmguard.findings.views import join_items
from mmguard.language import Message, as_message, join, translate
from mmguard.text import quantity, visible, wrap
from mmguard.version import __version__

#: Number of possible causes on the first screen; one more is shown, too, rather than a line about it.
_POSSIBLE = 3
_TRUE_LINE_ADVICE = (
    'The line that Python shows is only where it waited for the device. To see the true line, run the same command '
    'with `CUDA_LAUNCH_BLOCKING=1`, or the failing batch on the CPU (device="cpu"), where the same fault is an '
    'IndexError that names the label; `TORCH_USE_CUDA_DSA=1` works only if torch was built with it. After the error '
    'the process can no longer use the device: start again.'
)
_TRUE_LINE_HINT = 'true line: run the same command with `CUDA_LAUNCH_BLOCKING=1`; Python shows a later line'
_NO_CAUSE_NOTE = 'None of the known causes fits what the log, the config and the labels show.'
_UNDECIDED_NOTE = 'The log does not decide between these causes. See which of them applies:'
_UNKNOWN_NOTE = 'The message does not say if labels are the cause. The next command looks at them.'
#: Number of lines of a message, and of other errors in a log, that are shown.
_MESSAGE, _OTHERS = 4, 6
#: Maximum number of characters of a quoted line.
_QUOTE = 240


def as_text(
    explanation: Explanation,
    name: str = '',
    config: Optional[str] = None,
    width: int = 100,
    verbose: bool = True,
    scan: str = '',
) -> str:
    """Return the error, its meaning, its causes in order (without ``verbose`` only the most likely), and advice.

    ``config`` and ``scan``, the command that scans the labels, replace those that the advice leaves open.
    """
    signature, error = explanation.signature, _build_error_rows(explanation, name, width)
    if signature is None:
        head = translate('not known: none of {number} signatures matches', number=len(read_signatures()))
        rows = [head, '', *error, '']
        rows += build_found_rows(explanation.more, width)
        return '\n'.join(
            [*rows, *_build_unknown_rows(explanation, width, config), *_build_other_rows(explanation, width)]
        )
    rows = [f'{signature.code}  {translate(signature.title)}', '', *error, '']
    rows += (_build_all_rows if verbose else _build_first_rows)(explanation, signature, width)
    after = translate('next: {command}', command=_fill_in_config(translate(explanation.command), config, scan))
    rows += [
        '',
        *(_wrap(after, width, '      ') if '(' in explanation.command else [after]),
    ]  # a command is never broken
    if config is None and not scan and 'mmguard scan CONFIG' in explanation.command:
        rows.append(translate('      without a config: mmguard scan FOLDER --num-classes N'))
    rows += _build_other_rows(explanation, width)
    for finding in explanation.more[:3]:
        title = visible(translate(finding.title))
        rows += _wrap(translate('also found: {code} {title}', code=finding.code, title=title), width, '  ')
    return '\n'.join(rows)


def _build_all_rows(explanation: Explanation, signature: Signature, width: int) -> List[str]:
    rows = _wrap(translate(signature.meaning), width)
    if explanation.is_asynchronous:
        rows += ['', *_wrap(translate(_TRUE_LINE_ADVICE), width)]
    rows += ['', translate('Causes:' if explanation.causes else _NO_CAUSE_NOTE)]
    shown: Dict[Any, int] = {}
    for number, weighed in enumerate(explanation.causes, 1):
        rows += _build_cause_rows(number, weighed, width, shown)
    return rows


def _build_first_rows(explanation: Explanation, signature: Signature, width: int) -> List[str]:
    """Return the confirmed causes, else the supported ones, else the undecided ones; and the number of other causes."""
    first = explanation.causes[0] if explanation.causes else None
    rows = [] if _is_confirmed(explanation) else _wrap(translate(signature.meaning), width, '  ')
    shown = 1
    if first is None:
        rows.append(translate(_NO_CAUSE_NOTE))
    elif _is_confirmed(explanation):
        # An error without a listed cause does not hide a confirmed one.
        shown = 2 if first.cause.key == 'unforeseen' and any(one.findings for one in explanation.causes[1:2]) else 1
        rows += [row for one in explanation.causes[:shown] for row in _build_confirmed_rows(one, width)]
    elif first.evidence is not None:
        rows += _wrap(
            translate('likely cause: {cause} [the log points to it]', cause=as_message(first.cause.text)), width, '  '
        )
        rows += _build_evidence_rows(first.evidence, width)
        rows += _build_next_rows(first, width)
    else:
        shown = len(explanation.causes) if len(explanation.causes) <= _POSSIBLE + 1 else _POSSIBLE
        rows.append(translate(_UNDECIDED_NOTE if shown > 1 else 'possible cause:'))
        rows += [row for one in explanation.causes[:shown] for row in _build_possible_rows(one, '- ', width)]
    rows += _wrap(translate(_TRUE_LINE_HINT), width, '  ') if explanation.is_asynchronous else []
    left = len(explanation.causes) - shown
    more = quantity(left, 'other cause') if left > 0 else Message('everything known about it')
    return [*rows, translate('more with --verbose: {more}', more=more)]


def _build_confirmed_rows(ranked: RankedCause, width: int) -> List[str]:
    """Return the finding that confirms a cause.

    A mere remark has other consequences, too: its advice is for those, unless it has an edit that was tried.
    """
    finding = ranked.findings[0]
    is_remark = finding.severity != ERROR and not finding.edits
    return _build_finding_rows(finding, width, cause=ranked.cause.text if is_remark else '', advice=ranked.advice)


def _build_finding_rows(finding: Finding, width: int, indent: str = '', cause: str = '', advice: str = '') -> List[str]:
    """Return a finding with its own advice; with a cause that it confirms, that cause with its advice."""
    texts: Dict[str, str] = {
        Message('found'): join(' ', (finding.code, as_message(finding.title))),
        Message('in'): join_items(finding.files, 3),
        Message('cause'): cause,
        Message('do'): advice if cause else finding.next_step,
    }
    return _build_label_rows(texts, width, indent)


def build_found_rows(findings: Sequence[Finding], width: int) -> List[str]:
    """Return the first finding of each code, each followed by an empty row."""
    first: Dict[str, Finding] = {}
    for finding in findings:
        first.setdefault(finding.code, finding)
    return [row for finding in first.values() for row in (*_build_finding_rows(finding, width), '')]


def _build_evidence_rows(evidence: Piece, width: int, indent: str = '') -> List[str]:
    label = Message('line {number:,}', number=evidence.line)
    texts: Dict[str, str] = {label: join('', [_show(evidence.text.strip()[:_QUOTE])])}
    return _build_label_rows(texts, width, indent)


def _build_possible_rows(ranked: RankedCause, mark: str, width: int) -> List[str]:
    """Return the rows of a cause that nothing supports: the observation that decides comes before the cause."""
    texts: Dict[str, str] = {
        Message('look'): ranked.cause.look,
        Message('cause'): ranked.cause.text,
        Message('do'): ranked.advice,
    }
    first, *more = _build_label_rows(texts, width, ' ' * len(mark))
    return [f'{mark}{first.lstrip()}', *more]


def _build_next_rows(ranked: RankedCause, width: int, indent: str = '') -> List[str]:
    texts: Dict[str, str] = {Message('look'): ranked.cause.look, Message('do'): ranked.advice}
    return _build_label_rows(texts, width, indent)


def _build_label_rows(texts: Mapping[str, str], width: int, indent: str) -> List[str]:
    """Return the texts, each with its label, without empty ones."""
    rows = {label: as_message(text) for label, text in texts.items() if text}
    lines = [indent + visible(translate('{label}: {text}', label=label, text=text)) for label, text in rows.items()]
    return [row for line in lines for row in _wrap(line, width, f'{indent}  ')]


def _is_confirmed(explanation: Explanation) -> bool:
    return (
        bool(explanation.causes)
        and explanation.causes[0].standing == CONFIRMED
        and bool(explanation.causes[0].findings)
    )


def advise(explanation: Explanation) -> str:
    """Return the advice on one line: about a cause only if something supports it, else the deciding observations."""
    first = explanation.causes[0] if explanation.causes else None
    if first is None:
        return _NO_CAUSE_NOTE
    if first.standing == POSSIBLE and len(explanation.causes) > 1:
        return ' '.join([_UNDECIDED_NOTE, *(f'{one.cause.look} ({one.cause.text})' for one in explanation.causes)])
    return ' '.join(filter(None, (first.cause.text, first.cause.look, first.advice)))


def format_signature(signature: Signature) -> str:
    """Return the text that `mmguard explain CODE` prints for a signature."""
    rows = [f'{signature.code}  {translate(signature.title)}', '', translate(signature.meaning), '']
    rows.append(translate('Causes, the most frequent first:'))
    for number, cause in enumerate(signature.causes, 1):
        texts = [as_message(cause.text)]
        if cause.look:
            texts.append(Message('To see whether it is this one: {look}', look=as_message(cause.look)))
        texts += [join(': ', (_name_framework(name), as_message(text))) for name, text in cause.advice.items()]
        codes = f' ({", ".join(cause.codes)})' if cause.codes else ''
        rows.append(f'{number}. {translate(join(" ", texts))}{codes}')
    return '\n'.join([*rows, '', translate('Next: {command}', command=choose(signature.command, ''))])


def _name_framework(framework: str) -> Message:
    return Message('To do') if framework == 'torch' else Message('With {framework}', framework=framework)


def as_json(explanation: Optional[Explanation], name: str, findings: Sequence[Finding] = ()) -> Dict[str, Any]:
    """Return the explanation as plain data for programs; without an error ``'error': None`` and the findings."""
    record: Dict[str, Any] = {'mmguard': __version__, 'log': name, 'error': None}
    if explanation is None:
        return {**record, 'more': [finding.code for finding in findings]}
    record['error'] = _convert_error(explanation.trouble, explanation.raised, explanation.signature)
    record['place'] = str(explanation.place) if explanation.place else None
    record['own_place'] = str(explanation.own_place) if explanation.own_place else None
    record['kernel'] = explanation.kernel or None
    record['asynchronous'] = explanation.is_asynchronous
    record['ranks'] = explanation.ranks
    if explanation.signature is not None:
        record['meaning'] = explanation.signature.meaning
        record['command'] = explanation.command
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
        for weighed in explanation.causes
    ]
    record['refuted'] = [cause.key for cause in explanation.refuted]
    record['framework'] = explanation.framework or None
    record['others'] = [_convert_error(*other) for other in explanation.others]
    record['more'] = [finding.code for finding in explanation.more]
    return record


def _convert_error(error: LogError, exception: LoggedException, signature: Optional[Signature]) -> Dict[str, Any]:
    return {
        'code': signature.code if signature else None,
        'type': exception.kind or None,
        'message': exception.message,
        'line': error.line,
        'rank': int(error.rank) if error.rank else None,
        'times': error.times,
    }


def _build_error_rows(explanation: Explanation, name: str, width: int) -> List[str]:
    lines = explanation.raised.text.strip().split('\n')
    named = [line for line in lines[_MESSAGE:] if re.search('did not receive grad', line)]
    shown = [_show(line)[:400] for line in lines[:_MESSAGE] + named]
    rows = [translate('error: {line}', line=shown[0]), *(f'       {line}' for line in shown[1:])]
    if explanation.kernel:
        rows.append(translate('kernel: {kernel}', kernel=visible(explanation.kernel)))
    rows += [row for line in explanation.ranks for row in _wrap(visible(translate(line)), width, '       ')]
    where = Message('line {number:,}', number=explanation.trouble.line)
    where = Message('{line} of {name}', line=where, name=visible(name)) if name else where
    rank = [Message('rank {rank}', rank=explanation.trouble.rank)] if explanation.trouble.rank else []
    times = [quantity(explanation.trouble.times, 'time')] if explanation.trouble.times > 1 else []
    rows.append(translate('in: {place}', place=join(', ', (where, *rank, *times))))
    if explanation.place:
        at = 'noticed at: {place}' if explanation.is_asynchronous else 'at: {place}'
        rows.append(translate(at, place=visible(str(explanation.place))))
    if explanation.own_place and explanation.own_place != explanation.place:
        rows.append(translate('your line: {place}', place=visible(str(explanation.own_place))))
    return rows


def _build_cause_rows(number: int, ranked: RankedCause, width: int, shown: Dict[Any, int]) -> List[str]:
    """Return the rows of a cause; ``shown`` holds the numbers of findings, each of which is printed once."""
    if ranked.standing == POSSIBLE:
        return _build_possible_rows(ranked, f'{number}. ', width)
    tag = ' [the log points to it]' if ranked.standing == SUPPORTED else ''
    rows = _wrap(f'{number}. {translate(ranked.cause.text)}{translate(tag)}', width, '   ')
    if ranked.evidence is not None:
        rows += _build_evidence_rows(ranked.evidence, width, '   ')
    for finding in ranked.findings[:3]:
        first = shown.setdefault((finding.code, finding.title), number)
        rows += (
            _build_finding_rows(finding, width, '   ')
            if first == number
            else [translate('   found: {code}, as under {number}', code=finding.code, number=first)]
        )
    return rows if ranked.findings else rows + _build_next_rows(ranked, width, '   ')


def _build_unknown_rows(explanation: Explanation, width: int, config: Optional[str]) -> List[str]:
    is_open_mmlab = 'mmengine' in get_lineage(explanation.framework) and not explanation.more
    command = _fill_in_config(
        'mmguard dry-run CONFIG' if is_open_mmlab else choose(SCAN, explanation.framework), config
    )
    rows = [] if explanation.more else _wrap(translate(_UNKNOWN_NOTE), width)
    return [*rows, translate('next: {command}', command=command)]


def _build_other_rows(explanation: Explanation, width: int) -> List[str]:
    rows: List[str] = []
    said = set()
    for trouble, raised, signature in explanation.others:
        first = _show(raised.text.strip().split('\n')[0])[:160]
        rank = [Message('rank {rank}', rank=trouble.rank)] if trouble.rank else []
        if (trouble.rank, first) not in said:
            where = translate(join(', ', (*rank, Message('line {number:,}', number=trouble.line))))
            rows.append(f'  {where}: {first}{f" ({signature.code})" if signature else ""}')
        said.add((trouble.rank, first))
    if not rows:
        return []
    more = [translate('  and {more:,} more', more=len(rows) - _OTHERS)] if len(rows) > _OTHERS else []
    return ['', translate('Also in the log (it follows, or came later):'), *rows[:_OTHERS], *more]


def _show(line: str) -> str:
    """Format a line of a log for printing: tabs as blanks, other control characters escaped."""
    return visible(line.replace('\t', '  '))


def _fill_in_config(command: str, config: Optional[str], scan: str = '') -> str:
    command = re.sub(r'mmguard scan [^;()\n]+', lambda _: scan, command) if scan else command
    return command if config is None else re.sub(r'\bCONFIG\b', lambda _: shlex.quote(config), command)


def _wrap(text: str, width: int, indent: str = '') -> List[str]:
    return wrap(text, max(width, 40), '', indent)
