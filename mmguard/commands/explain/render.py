"""Explanations of errors as text and as JSON."""

from __future__ import annotations

import re
import shlex
from typing import Any, Dict, Mapping, Optional, Sequence

from mmguard.commands.explain.explanation import CONFIRMED, POSSIBLE, SUPPORTED, Explanation, RankedCause
from mmguard.commands.explain.log_errors import LogError, LoggedException, Piece
from mmguard.findings.finding import ERROR, Finding
from mmguard.findings.signatures import SCAN, Signature, choose, get_lineage, read_signatures
from mmguard.findings.views import join_items
from mmguard.language import Message, as_message, join, translate
from mmguard.text import Rows, Wrapped, lay_out, quantity, visible
from mmguard.version import __version__

#: Number of possible causes that are shown without ``--verbose``; if only one more exists, it is shown, too.
_POSSIBLE = 3
_TRUE_LINE_ADVICE = Message(
    'CUDA reports errors late: the traceback does not show the line that failed. To see this line, restart the process '
    'with `CUDA_LAUNCH_BLOCKING=1`, or run the failing batch on the CPU, where an IndexError names the label.'
)
_TRUE_LINE_HINT = Message('failed line: run again with `CUDA_LAUNCH_BLOCKING=1` to see it; the log shows a later line')
_NO_CAUSE_NOTE = Message('No known cause of this error matches the log, the config and the labels.')
_UNDECIDED_NOTE = Message('The log does not show which of these causes applies. Check them:')
_UNKNOWN_NOTE = Message('The message does not say if labels are the cause. The next command checks the labels.')
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
    """Return a text with the error, its meaning, all causes (only the most likely if not ``verbose``), and advice.

    ``config`` replaces CONFIG in the advice, and the command ``scan`` replaces `mmguard scan ...`.
    """
    signature, error = explanation.signature, _build_error_rows(explanation, name)
    others, width = _build_other_rows(explanation), max(width, 40)
    if signature is None:
        head = Message('unknown error: none of {number} signatures matches', number=len(read_signatures()))
        unknown = _build_unknown_rows(explanation, config)
        return lay_out([head, '', *error, '', *build_found_rows(explanation.more), *unknown, *others], width)
    rows = [join('  ', (signature.code, as_message(signature.title))), '', *error, '']
    rows += (_build_all_rows if verbose else _build_first_rows)(explanation, signature)
    after = Message('next: {command}', command=_fill_in_config(translate(explanation.command), config, scan))
    rows += ['', Wrapped(after, rest=' ' * 6) if '(' in explanation.command else after]  # a command is never broken
    if config is None and not scan and 'mmguard scan CONFIG' in explanation.command:
        rows.append(Message('      without a config: mmguard scan FOLDER --num-classes N'))
    found = [(finding.code, as_message(finding.title)) for finding in explanation.more[:3]]
    also = [Wrapped(Message('also found: {code} {title}', code=code, title=title), rest='  ') for code, title in found]
    return lay_out([*rows, *others, *also], width)


def _build_all_rows(explanation: Explanation, signature: Signature) -> Rows:
    rows: Rows = [Wrapped(signature.meaning)]
    rows += ['', Wrapped(_TRUE_LINE_ADVICE)] if explanation.is_asynchronous else []
    rows += ['', Message('Causes:') if explanation.causes else _NO_CAUSE_NOTE]
    shown: Dict[Any, int] = {}
    for number, ranked in enumerate(explanation.causes, 1):
        rows += _build_cause_rows(number, ranked, shown)
    return rows


def _build_first_rows(explanation: Explanation, signature: Signature) -> Rows:
    """Return rows of the first cause, or of several if the first is only possible, and how many others exist."""
    first = explanation.causes[0] if explanation.causes else None
    is_confirmed = first is not None and first.standing == CONFIRMED
    rows: Rows = [] if is_confirmed else [Wrapped(signature.meaning, rest='  ')]
    shown = 1
    if first is None:
        rows.append(_NO_CAUSE_NOTE)
    elif is_confirmed:
        # An error without a listed cause does not hide a confirmed one.
        shown = 2 if first.cause.key == 'unforeseen' and any(one.findings for one in explanation.causes[1:2]) else 1
        rows += [row for one in explanation.causes[:shown] for row in _build_confirmed_rows(one)]
    elif first.evidence is not None:
        cause = as_message(first.cause.text)
        rows.append(Wrapped(Message('likely cause: {cause} [the log points to it]', cause=cause), rest='  '))
        rows += [*_build_evidence_rows(first.evidence), *_build_next_rows(first)]
    else:
        shown = len(explanation.causes) if len(explanation.causes) <= _POSSIBLE + 1 else _POSSIBLE
        rows.append(_UNDECIDED_NOTE if shown > 1 else Message('possible cause:'))
        rows += [row for one in explanation.causes[:shown] for row in _build_possible_rows(one, '- ')]
    rows += [Wrapped(_TRUE_LINE_HINT, rest='  ')] if explanation.is_asynchronous else []
    left = len(explanation.causes) - shown
    more = quantity(left, 'other cause') if left > 0 else Message('all details of this error')
    return [*rows, Message('more with --verbose: {more}', more=more)]


def _build_confirmed_rows(ranked: RankedCause) -> Rows:
    """Return the rows of the finding that confirms a cause.

    If the finding is not an error and has no edits, the advice of the cause replaces that of the finding.
    """
    finding = ranked.findings[0]
    is_remark = finding.severity != ERROR and not finding.edits
    return _build_finding_rows(finding, cause=ranked.cause.text if is_remark else '', advice=ranked.advice)


def _build_finding_rows(finding: Finding, indent: str = '', cause: str = '', advice: str = '') -> Rows:
    """Return the rows of a finding; if ``cause`` is given, ``cause`` and ``advice`` replace its own advice."""
    texts: Dict[str, str] = {
        Message('found'): join(' ', (finding.code, as_message(finding.title))),
        Message('in'): join_items(finding.files, 3),
        Message('cause'): cause,
        Message('do'): advice if cause else finding.next_step,
    }
    return _build_label_rows(texts, indent)


def build_found_rows(findings: Sequence[Finding]) -> Rows:
    """Return the rows of the first finding of each code, each followed by an empty row."""
    first: Dict[str, Finding] = {}
    for finding in findings:
        first.setdefault(finding.code, finding)
    return [row for finding in first.values() for row in (*_build_finding_rows(finding), '')]


def _build_evidence_rows(evidence: Piece, indent: str = '') -> Rows:
    label = Message('line {number:,}', number=evidence.line)
    return _build_label_rows({label: join('', [_show(evidence.text.strip()[:_QUOTE])])}, indent)


def _build_possible_rows(ranked: RankedCause, mark: str) -> Rows:
    """Return the rows of a cause without evidence: first what to look at, then the cause and the advice."""
    texts: Dict[str, str] = {
        Message('look'): ranked.cause.look,
        Message('cause'): ranked.cause.text,
        Message('do'): ranked.advice,
    }
    return _build_label_rows(texts, ' ' * len(mark), mark)


def _build_next_rows(ranked: RankedCause, indent: str = '') -> Rows:
    return _build_label_rows({Message('look'): ranked.cause.look, Message('do'): ranked.advice}, indent)


def _build_label_rows(texts: Mapping[str, str], indent: str, mark: str = '') -> Rows:
    """Return a row ``label: text`` for each text that is not empty; the first row begins with ``mark``."""
    rows = [Message('{label}: {text}', label=label, text=as_message(text)) for label, text in texts.items() if text]
    return [Wrapped(row, indent if number or not mark else mark, f'{indent}  ') for number, row in enumerate(rows)]


def advise(explanation: Explanation) -> str:
    """Return advice in one line: for the first cause if it has evidence or is the only one, else for all causes."""
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
            texts.append(Message('To check this cause: {look}', look=as_message(cause.look)))
        texts += [join(': ', (_name_framework(name), as_message(text))) for name, text in cause.advice.items()]
        codes = f' ({", ".join(cause.codes)})' if cause.codes else ''
        rows.append(f'{number}. {translate(join(" ", texts))}{codes}')
    return '\n'.join([*rows, '', translate('Next: {command}', command=choose(signature.command, ''))])


def _name_framework(framework: str) -> Message:
    return Message('To do') if framework == 'torch' else Message('With {framework}', framework=framework)


def as_json(explanation: Optional[Explanation], name: str, findings: Sequence[Finding] = ()) -> Dict[str, Any]:
    """Return the explanation as plain data for ``--json``; without an explanation, return the codes of ``findings``."""
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


def _build_error_rows(explanation: Explanation, name: str) -> Rows:
    lines = explanation.raised.text.strip().split('\n')
    named = [line for line in lines[_MESSAGE:] if re.search('did not receive grad', line)]
    shown = [_show(line)[:400] for line in lines[:_MESSAGE] + named]
    rows: Rows = [Message('error: {line}', line=shown[0]), *(f'       {line}' for line in shown[1:])]
    if explanation.kernel:
        rows.append(Message('kernel: {kernel}', kernel=explanation.kernel))
    rows += [Wrapped(line, rest=' ' * 7) for line in explanation.ranks]
    where = Message('line {number:,}', number=explanation.trouble.line)
    where = Message('{line} of {name}', line=where, name=name) if name else where
    rank = [Message('rank {rank}', rank=explanation.trouble.rank)] if explanation.trouble.rank else []
    times = [quantity(explanation.trouble.times, 'time')] if explanation.trouble.times > 1 else []
    rows.append(Message('in: {place}', place=join(', ', (where, *rank, *times))))
    if explanation.place:
        at = 'noticed at: {place}' if explanation.is_asynchronous else 'at: {place}'
        rows.append(Message(at, place=str(explanation.place)))
    if explanation.own_place and explanation.own_place != explanation.place:
        rows.append(Message('your line: {place}', place=str(explanation.own_place)))
    return rows


def _build_cause_rows(number: int, ranked: RankedCause, shown: Dict[Any, int]) -> Rows:
    """Return the rows of a cause. A finding in ``shown``, {finding: number of its cause}, is not printed again."""
    if ranked.standing == POSSIBLE:
        return _build_possible_rows(ranked, f'{number}. ')
    tag = [Message(' [the log points to it]')] if ranked.standing == SUPPORTED else []
    rows: Rows = [Wrapped(join('', (f'{number}. ', as_message(ranked.cause.text), *tag)), rest='   ')]
    rows += _build_evidence_rows(ranked.evidence, '   ') if ranked.evidence is not None else []
    for finding in ranked.findings[:3]:
        first = shown.setdefault((finding.code, finding.title), number)
        again = Message('   found: {code}, see cause {number}', code=finding.code, number=first)
        rows += _build_finding_rows(finding, '   ') if first == number else [again]
    return rows if ranked.findings else rows + _build_next_rows(ranked, '   ')


def _build_unknown_rows(explanation: Explanation, config: Optional[str]) -> Rows:
    is_open_mmlab = 'mmengine' in get_lineage(explanation.framework) and not explanation.more
    command = 'mmguard dry-run CONFIG' if is_open_mmlab else choose(SCAN, explanation.framework)
    after = Message('next: {command}', command=_fill_in_config(command, config))
    return [after] if explanation.more else [Wrapped(_UNKNOWN_NOTE), after]


def _build_other_rows(explanation: Explanation) -> Rows:
    rows: Dict[Any, Message] = {}
    for trouble, raised, signature in explanation.others:
        first = _show(raised.text.strip().split('\n')[0])[:160]
        rank = [Message('rank {rank}', rank=trouble.rank)] if trouble.rank else []
        where = join(', ', (*rank, Message('line {number:,}', number=trouble.line)))
        said = f': {first}{f" ({signature.code})" if signature else ""}'
        rows.setdefault((trouble.rank, first), join('', ('  ', where, said)))
    if not rows:
        return []
    more = [Message('  and {more:,} more', more=len(rows) - _OTHERS)] if len(rows) > _OTHERS else []
    return ['', Message('Also in the log (consequences, or later errors):'), *list(rows.values())[:_OTHERS], *more]


def _show(line: str) -> str:
    """Format a line of a log for printing: tabs as blanks, other control characters escaped."""
    return visible(line.replace('\t', '  '))


def _fill_in_config(command: str, config: Optional[str], scan: str = '') -> str:
    command = re.sub(r'mmguard scan [^;()\n]+', lambda _: scan, command) if scan else command
    return command if config is None else re.sub(r'\bCONFIG\b', lambda _: shlex.quote(config), command)
