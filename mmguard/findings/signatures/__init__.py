"""Error signatures in JSON files, one file per area of errors, and the functions that read them.

JSON needs no other package, so ``mmguard explain`` works in a broken installation. This package may import
the modules that ``mmguard.findings`` may import, except its rules.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, List, Mapping, Tuple, Union

from mmguard.files.regular import read_regular

#: Kinds of errors, the closest to the cause first: a CUDA kernel's assert, which names the fault; an exception, raised
#: where the fault was noticed; a process killed from outside, without a reason; a consequence of the end of another
#: process; a sign of a fault in a training that continues; a log that just ends, perhaps without a fault.
STAGES = ('kernel', 'raised', 'ended', 'follows', 'sign', 'open')
KERNEL, RAISED, ENDED, FOLLOWS, SIGN, OPEN = range(6)

#: Files in search order; the first matching signature is used.
FILES = ('own', 'device', 'targets', 'shapes', 'numbers', 'ranks', 'memory', 'checkpoints', 'environment', 'datasets')

#: Framework -> command that finds the cause, unless the signature names another command.
SCAN = {
    'mmengine': 'mmguard scan CONFIG',
    'ultralytics': 'mmguard scan data.yaml',
    'nnunet': 'mmguard scan $nnUNet_raw/DatasetXXX_NAME',
    **dict.fromkeys(['detectron2', 'monai', 'torchvision', 'transformers'], 'mmguard scan DATA --num-classes N'),
    'torch': 'mmguard scan CONFIG',
}

#: Framework -> framework that it is built on.
_BUILT_ON = {
    **dict.fromkeys(['mmseg', 'mmdet'], 'mmengine'),
    **dict.fromkeys(['yolox', 'rf-detr', 'rt-detr', 'd-fine', 'deim'], 'torch'),
}


def get_lineage(framework: str) -> Tuple[str, ...]:
    """Return a framework and the frameworks that it is built on, or ``('torch',)`` if the name is empty.

    Example:
        >>> get_lineage('mmdet'), get_lineage('')
        (('mmdet', 'mmengine'), ('torch',))
    """
    names = [framework or 'torch']
    while names[-1] in _BUILT_ON:
        names.append(_BUILT_ON[names[-1]])
    return tuple(names)


def choose(texts: Mapping[str, str], framework: str) -> str:
    """Return the text for a framework, a framework that it is built on, or plain PyTorch (the first found), or ''."""
    return next((texts[name] for name in (*get_lineage(framework), 'torch') if name in texts), '')


@dataclass(frozen=True)
class Cause:
    """Possible cause of an error.

    Args:
        key (str): Name within its signature.
        text (str): Description of the cause, with the advice if all frameworks have the same advice.
        codes (tuple[str]): Codes of findings that confirm the cause.
        context (str): Pattern of logs in which the cause is more frequent, but not proven.
        supports (str): Pattern of evidence for the cause; the matching line is quoted.
        refutes (str): Pattern of evidence that rules the cause out.
        refuted_by (tuple[str]): Inputs (``'files'``: all label files, ``'config'``) that rule the cause out if they
            were read without a finding of ``codes``; empty if they cannot show the cause, such as a faulty transform.
        frameworks (tuple[str]): Frameworks in which the cause occurs (``torch``: unknown framework); empty: all.
        look (str): Observation that shows whether this is the cause.
        advice (dict[str, str]): Framework -> advice; ``torch``: for all other frameworks.
    """

    key: str
    text: str
    codes: Tuple[str, ...] = ()
    context: str = ''
    supports: str = ''
    refutes: str = ''
    refuted_by: Tuple[str, ...] = ()
    frameworks: Tuple[str, ...] = ()
    look: str = ''
    advice: Mapping[str, str] = field(default_factory=dict)

    def occurs_in(self, framework: str) -> bool:
        """Return True if the cause can occur in a framework; an empty name means an unknown framework."""
        return not self.frameworks or not {*get_lineage(framework)}.isdisjoint(self.frameworks)


@dataclass(frozen=True)
class Signature:
    """Known error message.

    Args:
        code (str): ``MG4xx``, ``MG35x`` to ``MG37x`` or ``MG58x``; never reused for another error.
        title (str): Description of the error in one line.
        pattern (str): Pattern of words that are the same in all versions, searched in ``Type: message`` across lines.
        meaning (str): Meaning of the error.
        causes (tuple[Cause]): Possible causes, the most frequent first.
        command (dict[str, str]): Framework, as in `Cause.advice` -> command that finds the cause; CONFIG, DATA and
            WORK_DIR are placeholders.
        place (str): Pattern that a line of the traceback must match, too; empty if any traceback is accepted.
        bare (bool): True if the error also appears in logs without an exception, as a separate line.
        stage (int): Index in ``STAGES``.
    """

    code: str
    title: str
    pattern: str
    meaning: str
    causes: Tuple[Cause, ...]
    command: Mapping[str, str] = field(default_factory=lambda: SCAN)
    place: str = ''
    bare: bool = False
    stage: int = RAISED


@lru_cache(maxsize=None)
def read_groups() -> Dict[str, Tuple[Signature, ...]]:
    """Return the signatures grouped by area; files are read once, on first use."""
    shared = _load('shared')
    files = [_load(name) for name in FILES]
    return {file['group']: tuple(_read_signature(entry, shared) for entry in file['signatures']) for file in files}


@lru_cache(maxsize=None)
def read_signatures() -> Tuple[Signature, ...]:
    """Return all signatures, in the order in which they are searched."""
    return tuple(signature for group in read_groups().values() for signature in group)


def _load(name: str) -> Dict[str, Any]:
    file: Dict[str, Any] = json.loads(read_regular(Path(__file__).parent / f'{name}.json'))
    return file


def _read_signature(entry: Dict[str, Any], shared: Dict[str, Dict[str, Any]]) -> Signature:
    fields = {**entry, 'stage': STAGES.index(entry.get('stage', 'raised'))}
    fields.update({name: _join(fields[name]) for name in ('pattern', 'place') if name in fields})
    if isinstance(fields.get('command'), str):
        fields['command'] = {'torch': fields['command']}
    return Signature(**{**fields, 'causes': tuple(_read_cause(cause, shared) for cause in entry['causes'])})


def _read_cause(entry: Union[str, Dict[str, Any]], shared: Dict[str, Dict[str, Any]]) -> Cause:
    """Return the cause of an entry: a key of ``shared.json``, or a dict of fields that override those of its key."""
    own = {'key': entry} if isinstance(entry, str) else entry
    fields = {**shared.get(own['key'], {}), **own}
    fields.update({name: _join(fields[name]) for name in ('context', 'supports', 'refutes') if name in fields})
    fields.update({name: tuple(fields[name]) for name in ('codes', 'refuted_by', 'frameworks') if name in fields})
    return Cause(**fields)


def _join(pattern: Union[str, List[str]]) -> str:
    """Join a list of alternatives into one pattern."""
    return pattern if isinstance(pattern, str) else '|'.join(pattern)
