"""From what went wrong to one error, what it means, and its causes in order."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Iterable, List, NamedTuple, Optional, Pattern, Sequence, Tuple, Union

from mmguard.findings.absent import absent_in
from mmguard.findings.finding import ERROR, Finding
from mmguard.findings.signatures import SIGNATURES, Cause, Signature
from mmguard.findings.signatures.signature import FOLLOWS, RAISED
from mmguard.findings.unused import unused_in
from mmguard.tools.explain.reader import Reader
from mmguard.tools.explain.troubles import Frame, Raised, Trouble

#: A text of no more lines is the message itself, and not a log in which one has to be found.
_FEW_LINES = 40
_LONGEST = 8000
#: Errors that are read for what ranks say of each other.
_RANKS = 256

#: What a cause has going for it.
CONFIRMED, HINTED, POSSIBLE, REFUTED = ('confirmed', 'hinted', 'possible', 'refuted')


class Weighed(NamedTuple):
    """A cause, and what speaks for or against it.

    Attributes:
        cause (Cause): It.
        standing (str): ``CONFIRMED`` by a finding, ``HINTED`` at by the log, ``POSSIBLE``, or ``REFUTED``: what would
            confirm it was looked for and not found.
        findings (tuple[Finding]): Those that confirm it.
        hinted (bool): Whether the log hints at it, beside what confirms it.
    """

    cause: Cause
    standing: str
    findings: Tuple[Finding, ...] = ()
    hinted: bool = False


class Known(NamedTuple):
    """What was looked for beside the log.

    Attributes:
        findings (tuple[Finding]): What `check` and `scan` found, the likeliest first.
        config, labels (bool): Whether a config, and label files, were read.
    """

    findings: Tuple[Finding, ...] = ()
    config: bool = False
    labels: bool = False

    def decides(self, code: str) -> bool:
        """Whether a finding with this code would have been seen."""
        return self.config if code.startswith('MG2') else self.labels


@dataclass
class Explanation:
    """What ended a training.

    Args:
        trouble (Trouble): The error that is the real one.
        raised (Raised): Of its chain the one that says most.
        signature (Signature, optional): ``None``: not known.
        causes (list[Weighed]): In order.
        others (list[tuple]): Further errors of the log, each with its signature: they follow from it, or came later.
        more (list[Finding]): Errors that `check` and `scan` found beside the causes.
        late (Raised, optional): Of a kernel's assert: the exception that reports it, at another line.
        ranks (list[str]): Who did not come to a collective, and which parameters got no gradient, in words.
    """

    trouble: Trouble
    raised: Raised
    signature: Optional[Signature] = None
    causes: List[Weighed] = field(default_factory=list)
    others: List[Tuple[Trouble, Raised, Optional[Signature]]] = field(default_factory=list)
    more: List[Finding] = field(default_factory=list)
    late: Optional[Raised] = None
    ranks: List[str] = field(default_factory=list)

    @property
    def is_asynchronous(self) -> bool:
        """Whether the line that Python shows is another than the one that failed."""
        said = f'{self.raised.said} {self.late.said if self.late else ""}'
        return bool(re.search(r'device-side|illegal memory|unspecified launch|CUBLAS|CUDNN|cuDNN|\.cu:\d', said))

    @property
    def place(self) -> Optional[Frame]:
        """The innermost line of the traceback."""
        frames = (self.late or self.raised).frames
        return frames[-1] if frames else None

    @property
    def own_place(self) -> Optional[Frame]:
        """The innermost line that stands in the user's own files."""
        return next((frame for frame in reversed((self.late or self.raised).frames) if not frame.is_installed), None)

    @property
    def kernel(self) -> str:
        """Which kernel asserted what, in one line; empty where none did."""
        found = re.search(r'([\w-]{1,100}\.cu):(\d{1,9})(?::\s*(?:void )?([^:\[(]{0,160}))?', self.raised.message)
        asserted = re.search(r'Assertion\s?[`\'"]?(.{1,400}?)[`\'"]? failed', self.raised.message)
        if not found or not asserted:
            return ''
        name = (found.group(3) or '').strip()
        return f'{found.group(1)}:{found.group(2)}{f", {name}" if name else ""}: {asserted.group(1)}'


def explain_text(lines: Iterable[Union[str, bytes]], known: Optional[Known] = None) -> Optional[Explanation]:
    """What ended a training, from its log.

    Args:
        lines (iterable): Pieces of the log, text or bytes, of any size.
        known (Known, optional): What was found in config and labels.

    Returns:
        Explanation: ``None`` where nothing in the log says that it ended badly.
    """
    pieces = (piece if isinstance(piece, bytes) else piece.encode('utf-8', 'surrogateescape') for piece in lines)
    return explain(Reader().read(pieces), known)


def explain(log: Reader, known: Optional[Known] = None) -> Optional[Explanation]:
    """What ended a training, from the log that was read."""
    troubles = [
        trouble
        for trouble in log.troubles
        if not trouble.is_harmless and any(r.kind or r.message for r in trouble.chain)
    ]
    if not troubles:
        alone = None if log.dice.is_now_and_then else _of_few_lines(log.beginning)
        if alone is None:
            return None
        troubles = [alone]
    judged = [(trouble, *_known_of(trouble)) for trouble in troubles]
    judged = [one for one in judged if one[2] is not None or one[1].frames or len(judged) == 1]
    if not judged:
        return None
    order = sorted(range(len(judged)), key=lambda place: (_stage(*judged[place]), _rank(log, judged[place][0]), place))
    trouble, raised, signature = judged[order[0]]
    found = Explanation(trouble, raised, signature, others=[judged[place] for place in order[1:]])
    said = [one.message for _, one, _ in judged[:_RANKS]]
    absent = absent_in(said)
    found.ranks = [*([f'absent: {absent}'] if absent else []), *unused_in(said).words]
    if signature is not None:
        if not raised.frames:
            late = [other for _, other, _ in found.others if other.frames and 'CUDA' in other.said]
            found.late = late[0] if late else None
        around = '\n'.join(
            [
                raised.said,
                raised.around,
                log.imported,
                *found.ranks,
                *(f'{other.said}\n{other.around}' for _, other, _ in found.others[:20]),
            ]
        )
        found.causes = weigh(signature, around[-(1 << 17) :], known or Known())
    taken = {finding.code for weighed in found.causes for finding in weighed.findings}
    found.more = [f for f in (known or Known()).findings if f.code not in taken and f.severity == ERROR]
    return found


def weigh(signature: Signature, around: str, known: Known) -> List[Weighed]:
    """The causes of a signature: what a finding confirms, then what the log hints at, then the rest."""
    weighed = [_weighed(cause, around, known) for cause in signature.causes]
    places = {finding.code: place for place, finding in enumerate(known.findings)}
    order = (CONFIRMED, HINTED, POSSIBLE, REFUTED)
    return sorted(
        weighed,
        key=lambda one: (
            order.index(one.standing),
            min((places[finding.code] for finding in one.findings), default=len(places)),
            not one.hinted,
        ),
    )


def _weighed(cause: Cause, around: str, known: Known) -> Weighed:
    found = tuple(finding for finding in known.findings if finding.code in cause.codes)
    contradicted = bool(cause.against) and _compiled(cause.against).search(around) is not None
    hinted = bool(cause.clue) and not contradicted and _compiled(cause.clue).search(around) is not None
    if found:
        return Weighed(cause, CONFIRMED, found, hinted)
    if cause.unless and _compiled(cause.unless).search(around):
        return Weighed(cause, REFUTED)
    if cause.codes and all(known.decides(code) for code in cause.codes):
        return Weighed(cause, REFUTED)
    return Weighed(cause, HINTED if hinted else POSSIBLE)


def signature_of(raised: Raised) -> Optional[Signature]:
    """The first signature that an exception, or a line, fits."""
    said = raised.said[:_LONGEST]
    for signature in SIGNATURES:
        fits = _compiled(signature.pattern).search(said) is not None
        if fits and (not signature.place or _compiled(signature.place).search(raised.around)):
            return signature
    return None


def _known_of(trouble: Trouble) -> Tuple[Raised, Optional[Signature]]:
    """Of a chain the exception that says most: the first with a signature, those that merely follow last."""
    chain = [raised for raised in trouble.chain if raised.kind or raised.message]
    known = [(raised, signature_of(raised)) for raised in chain]
    signed = [(raised, signature) for raised, signature in known if signature is not None]
    if signed:
        return min(signed, key=lambda one: one[1].stage)
    return chain[-1] if re.match(r'Caught \w+ in ', chain[0].message) else chain[0], None


def _of_few_lines(lines: Sequence[str]) -> Optional[Trouble]:
    """A message without a traceback, as people paste it."""
    text = '\n'.join(line for line in lines if line.strip())
    if not text or len(lines) > _FEW_LINES:
        return None
    raised = Raised('', text[:_LONGEST])
    return Trouble(1, '', [raised]) if signature_of(raised) is not None else None


def _stage(trouble: Trouble, raised: Raised, signature: Optional[Signature]) -> float:
    if signature is not None:
        # A loss of NaN is no end of a training; it explains one that comes later.
        return signature.stage + (0.5 if signature.code == 'MG442' else 0)
    return FOLLOWS if raised.kind.endswith(('SystemExit', 'KeyboardInterrupt')) else RAISED


def _rank(log: Reader, trouble: Trouble) -> int:
    """0 for the rank that torchrun names as the first that failed."""
    return 0 if not log.first_rank or not trouble.rank or trouble.rank == log.first_rank else 1


@lru_cache(maxsize=None)
def _compiled(pattern: str) -> Pattern[str]:
    return re.compile(pattern, re.MULTILINE | re.DOTALL)
