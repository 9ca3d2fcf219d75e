"""Explanation of the error that ended a training: its meaning, and its causes, the most likely first."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import FrozenSet, Iterable, List, NamedTuple, Optional, Pattern, Sequence, Tuple, Union

from mmguard.commands.explain.log_errors import Frame, LogError, LoggedException, Piece
from mmguard.commands.explain.log_facts import LogFacts, find_facts, find_framework
from mmguard.commands.explain.reader import Reader
from mmguard.facts.run import find_missing_ranks, find_unused
from mmguard.findings.finding import ERROR, INFO, Finding
from mmguard.findings.signatures import FOLLOWS, OPEN, RAISED, Cause, Signature, choose, read_signatures

#: A text with at most this many lines may be a pasted error message instead of a log.
_FEW_LINES = 40
_LONGEST = 8000
#: Maximum number of errors that are searched for missing ranks and unused parameters.
_RANKS = 256
#: Number of characters of error, traceback and facts that are searched for the patterns of causes.
_SEARCHED = 1 << 17
#: Pattern in tracebacks of MMDetection 2.x and MMSegmentation 0.x, which are incompatible with configs for MMEngine.
_OLD_PROGRAM = r'mmcv[/\\.](?:runner|parallel)\b'
#: Findings that raise their own error, and so do not explain any other error: a config for another version of the
#: framework, files that are missing or unreadable, class weights of the wrong length.
_WITH_OWN_ERROR = ('MG227', 'MG129', 'MG132', 'MG150', 'MG169', 'MG207', 'MG214')

#: Cause that is shown for an error found by `scan` or `check` if no other cause lists the code of this error.
_UNFORESEEN = Cause('unforeseen', 'The labels or the config have an error that is not a known cause of this message.')
#: Degrees of evidence for a cause.
CONFIRMED, SUPPORTED, POSSIBLE = ('confirmed', 'supported', 'possible')


#: (error of a log, most informative exception of its chain, signature of this exception or ``None``).
JudgedError = Tuple[LogError, LoggedException, Optional[Signature]]


class RankedCause(NamedTuple):
    """Cause with its ``standing``: ``'confirmed'`` by findings, ``'supported'`` by the log, or ``'possible'``."""

    cause: Cause
    standing: str
    findings: Tuple[Finding, ...] = ()
    evidence: Optional[Piece] = None
    is_in_context: bool = False  #: True if the log matches ``Cause.context``, where the cause is frequent.
    advice: str = ''  #: Advice for the framework of the log.


class OutsideFacts(NamedTuple):
    """Facts about config and labels, which are not in the log."""

    findings: Tuple[Finding, ...] = ()  #: Findings of `check` and `scan`, the most severe first.
    codes: FrozenSet[str] = frozenset()  #: Codes of all findings, even if too weak to confirm a cause.
    #: ``'config'`` if the config was checked; ``'files'`` if all labels were read and the valid labels are known.
    read: FrozenSet[str] = frozenset()
    num_classes: Optional[int] = None  #: ``--num-classes``.

    def refutes(self, cause: Cause) -> bool:
        """Return True if the config or labels that would show a cause were read, and no finding confirms the cause."""
        return bool(cause.refuted_by) and self.read.issuperset(cause.refuted_by) and self.codes.isdisjoint(cause.codes)


@dataclass
class Explanation:
    """Explanation of how a training ended."""

    trouble: LogError  #: The original error.
    raised: LoggedException  #: The most informative exception of its chain.
    signature: Optional[Signature] = None  #: ``None`` if the error is unknown.
    causes: List[RankedCause] = field(default_factory=list)  #: Ranked causes, without the refuted ones.
    others: List[JudgedError] = field(default_factory=list)  #: Other errors: consequences, or later errors.
    more: List[Finding] = field(default_factory=list)  #: Errors of `check` and `scan` in addition to the causes.
    refuted: List[Cause] = field(default_factory=list)  #: Causes ruled out by the log, or by config and labels.
    framework: str = ''  #: Framework that trains; empty if unknown.
    task: str = ''  #: Labels that the error is about, ``'boxes'`` or ``'segmentation'``; empty if unknown.
    late: Optional[LoggedException] = None  #: Exception that reports a failed kernel, at a later line.
    ranks: List[str] = field(default_factory=list)  #: Lines about missing ranks and unused parameters.

    @property
    def is_open(self) -> bool:
        """True if the log only ends early, and the training may still be running."""
        return self.signature is not None and self.signature.stage == OPEN

    @property
    def is_asynchronous(self) -> bool:
        """True if the error was reported asynchronously, so that the traceback may not show the line that failed."""
        said = f'{self.raised.text} {self.late.text if self.late else ""}'
        return bool(re.search(r'device-side|illegal memory|unspecified launch|CUBLAS|CUDNN|cuDNN|\.cu:\d', said))

    @property
    def command(self) -> str:
        """Command that shows which cause applies, for the framework in the log; empty if the error is unknown."""
        return choose(self.signature.command, self.framework) if self.signature else ''

    @property
    def place(self) -> Optional[Frame]:
        """Innermost frame of the traceback, or ``None`` if the log has no traceback."""
        frames = (self.late or self.raised).frames
        return frames[-1] if frames else None

    @property
    def own_place(self) -> Optional[Frame]:
        """Innermost frame of the traceback in the user's own files, or ``None`` without such a frame."""
        return next((frame for frame in reversed((self.late or self.raised).frames) if not frame.is_installed), None)

    @property
    def kernel(self) -> str:
        """CUDA kernel and its failed assertion in one line; empty if no kernel failed."""
        found = re.search(r'([\w-]{1,100}\.cu):(\d{1,9})(?::\s*(?:void )?([^:\[(]{0,160}))?', self.raised.message)
        asserted = re.search(r'Assertion\s?[`\'"]?(.{1,400}?)[`\'"]? failed', self.raised.message)
        if not found or not asserted:
            return ''
        name = (found.group(3) or '').strip()
        return f'{found.group(1)}:{found.group(2)}{f", {name}" if name else ""}: {asserted.group(1)}'


def explain_text(lines: Iterable[Union[str, bytes]], outside: Optional[OutsideFacts] = None) -> Optional[Explanation]:
    """Explain a log that is passed as pieces of text or bytes; return ``None`` if the log shows no error."""
    pieces = (piece if isinstance(piece, bytes) else piece.encode('utf-8', 'surrogateescape') for piece in lines)
    return explain(Reader().read(pieces), outside)


def explain(log: Reader, outside: Optional[OutsideFacts] = None, names: Sequence[str] = ()) -> Optional[Explanation]:
    """Explain the error that ended a training, or a sign that the model does not learn; ``None`` without either.

    ``names`` are paths that may contain the name of a framework.
    """
    outside = outside or OutsideFacts()
    judged = _judge(log)
    if not judged:
        return None
    ordered = sorted(judged, key=lambda one: (_get_stage(*one[1:]), _rank_error(log, one[0])))
    (trouble, raised, signature), *others = ordered
    found = Explanation(trouble, raised, signature, others=others)
    said = [one.message for _, one, _ in judged[:_RANKS]]
    absent = find_missing_ranks(said)
    found.ranks = [*([f'absent: {absent}'] if absent else []), *find_unused(said).lines]
    found.framework = find_framework([*(piece.text for piece in raised.pieces), *log.beginning[:40], *names])
    if signature is not None:
        if not raised.frames:
            late = [other for _, other, _ in found.others if other.frames and 'CUDA' in other.text]
            found.late = late[0] if late else None
        pieces = [*raised.pieces]
        named = next((piece for piece in pieces if 'did not receive grad' in piece.searched), pieces[0])
        pieces += [Piece(named.line, named.text, text) for text in found.ranks]
        pieces += [piece for _, other, _ in found.others[:20] for piece in other.pieces]
        pieces += [piece for sign in log.signs[:20] for piece in sign.chain[0].pieces if sign is not trouble]
        said = [*log.beginning[:40], *names]
        facts = find_facts(log.facts, trouble.before, pieces, said, outside.num_classes, log.beginning)
        found.framework, found.task = facts.framework, facts.task
        found.causes, found.refuted = weigh(signature, pieces, facts, outside)
    taken = {finding.code for weighed in found.causes for finding in weighed.findings}
    found.more = [f for f in outside.findings if f.code not in taken and f.severity == ERROR]
    unforeseen = [finding for finding in found.more if finding.code not in _WITH_OWN_ERROR]
    if signature is not None and unforeseen and _is_about_data(signature, found.causes):
        found.more.remove(unforeseen[0])
        found.causes.insert(0, RankedCause(_UNFORESEEN, CONFIRMED, (unforeseen[0],)))
    return found


def _is_about_data(signature: Signature, causes: Sequence[RankedCause]) -> bool:
    """Return True if labels or config can cause an error, and neither a log line nor an error in them explains it."""
    first = causes[0] if causes else None
    is_settled = first is not None and (
        first.standing == SUPPORTED or any(finding.severity == ERROR for finding in first.findings)
    )
    return not is_settled and any(cause.codes for cause in signature.causes)


def weigh(
    signature: Signature, pieces: Sequence[Piece], facts: LogFacts, outside: OutsideFacts
) -> Tuple[List[RankedCause], List[Cause]]:
    """Return the ranked causes of a signature, and its refuted causes.

    Causes confirmed by a finding come first (the most severe first), then causes supported by a line of the log, then
    causes confirmed only by a remark, then the rest by frequency. Within each group, causes whose ``context`` matches
    the log come first.
    """
    text = SearchText([*pieces, *facts.pieces])
    if text.find(_OLD_PROGRAM) is not None:
        outside = outside._replace(read=outside.read - {'config'})
    weighed: List[RankedCause] = []
    refuted: List[Cause] = []
    for cause in signature.causes:
        one = _weigh_one(cause, text, outside) if cause.occurs_in(facts.framework) else None
        if one is None:
            refuted.append(cause)
        else:
            weighed.append(one._replace(advice=choose(cause.advice, facts.framework)))
    place = {finding.code: number for number, finding in enumerate(outside.findings)}
    order = (CONFIRMED, SUPPORTED, POSSIBLE)
    weighed.sort(
        key=lambda one: (
            order.index(one.standing) + (1.5 if {finding.severity for finding in one.findings} == {INFO} else 0),
            min((place[finding.code] for finding in one.findings), default=0),
            one.evidence is None,
            not one.is_in_context,
        )
    )
    return weighed, refuted


def _weigh_one(cause: Cause, text: SearchText, outside: OutsideFacts) -> Optional[RankedCause]:
    """Return a cause with its evidence, or ``None`` if it is refuted; the log can refute it in spite of findings."""
    if cause.refutes and text.find(cause.refutes) is not None:
        return None
    is_error = any(finding.severity == ERROR for finding in outside.findings)
    found = tuple(
        finding
        for finding in outside.findings
        if finding.code in cause.codes and not (is_error and finding.severity == INFO)
    )
    evidence = text.find(cause.supports) if cause.supports else None
    is_in_context = bool(cause.context) and text.find(cause.context) is not None
    if found:
        return RankedCause(cause, CONFIRMED, found, evidence, is_in_context)
    if evidence is None and outside.refutes(cause):
        return None
    return RankedCause(cause, POSSIBLE if evidence is None else SUPPORTED, (), evidence, is_in_context)


class SearchText:
    """Joined text of several pieces of a log, with a search for the piece that a pattern matches."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self.pieces = pieces
        self.starts = [0, *accumulate(len(piece.searched) + 1 for piece in pieces)]
        self.text = '\n'.join(piece.searched for piece in pieces)[:_SEARCHED]

    def find(self, pattern: str) -> Optional[Piece]:
        """Return the piece where the match of a pattern begins (its last group if the match is empty), or ``None``."""
        found = _compile(pattern).search(self.text)
        if found is None or not self.pieces:
            return None
        at = (
            found.start()
            if found.end() > found.start()
            else max([found.start(number) for number in range(1, found.re.groups + 1)], default=0)
        )
        return self.pieces[bisect_right(self.starts, at) - 1]


def find_signature(exception: LoggedException) -> Optional[Signature]:
    """Return the first signature that matches an exception or a line, or ``None`` if no signature matches."""
    said = exception.text[:_LONGEST]
    for signature in read_signatures():
        fits = _compile(signature.pattern).search(said) is not None
        if fits and (not signature.place or _compile(signature.place).search(exception.around)):
            return signature
    return None


def _judge(log: Reader) -> List[JudgedError]:
    """Return the errors of a log (if it has none, a pasted message or else the signs), with their signatures."""
    troubles = [
        trouble
        for trouble in log.troubles
        if not trouble.is_harmless and any(r.kind or r.message for r in trouble.chain)
    ]
    if not troubles:
        pasted = None if log.classes.is_sometimes_nan or log.classes.always_nan else _find_in_few_lines(log.beginning)
        # Prefer the same sign found by the reader, because it has a line number.
        signed = [find_signature(sign.chain[0]) for sign in log.signs]
        is_new = pasted is not None and find_signature(pasted.chain[0]) not in signed
        troubles = [pasted] if pasted is not None and is_new else log.signs
    judged = [(trouble, *_find_informative(trouble)) for trouble in troubles]
    # An unknown line without a traceback may be a program's own message, unless nothing else is there.
    return [one for one in judged if one[2] is not None or one[1].frames] or judged[-1:]


def _find_informative(error: LogError) -> Tuple[LoggedException, Optional[Signature]]:
    """Return the most informative exception of a chain (a cause, rather than a consequence) and its signature."""
    chain = [raised for raised in error.chain if raised.kind or raised.message]
    # The message of a worker is that of the original error, which comes first or next.
    chain = [raised for raised in chain if not re.match(r'Caught \w+ in ', raised.message)] or chain
    known = [(raised, find_signature(raised)) for raised in chain]
    signed = [(raised, signature) for raised, signature in known if signature is not None]
    if signed:
        return min(signed, key=lambda one: one[1].stage)
    return chain[0], None


def _find_in_few_lines(lines: Sequence[str]) -> Optional[LogError]:
    """Return the error in a few pasted lines without a traceback, or ``None`` if the error is not known."""
    text = '\n'.join(line for line in lines if line.strip())
    if not text or len(lines) > _FEW_LINES:
        return None
    rows = [(number, line.strip()) for number, line in enumerate(lines, 1) if line.strip()]
    raised = LoggedException('', text[:_LONGEST], lines=rows)
    signature = find_signature(raised)
    if signature is None:
        return None
    # Move the line to the front that matches the signature by itself.
    first = next((n for n, (_, row) in enumerate(rows) if find_signature(LoggedException('', row)) is signature), 0)
    rows = rows[first:] + rows[:first]
    moved = LoggedException('', '\n'.join(row for _, row in rows)[:_LONGEST], lines=rows)
    return LogError(rows[0][0], '', [moved if find_signature(moved) is signature else raised])


def _get_stage(exception: LoggedException, signature: Optional[Signature]) -> float:
    if signature is not None:
        # A loss of NaN does not end a training; it explains an error that comes later.
        return signature.stage + (0.5 if signature.code == 'MG442' else 0)
    return FOLLOWS if exception.kind.endswith(('SystemExit', 'KeyboardInterrupt')) else RAISED


def _rank_error(log: Reader, error: LogError) -> int:
    """Return 1 for an error of a rank that did not fail first according to torchrun, else 0."""
    return 0 if not log.first_rank or not error.rank or error.rank == log.first_rank else 1


@lru_cache(maxsize=None)
def _compile(pattern: str) -> Pattern[str]:
    return re.compile(pattern, re.MULTILINE | re.DOTALL)
