"""``truth.json``: per rebuilt report, what the true cause allows and forbids an answer to say; and the verdicts by it.

A report holds ``id`` (of the public report), ``commands`` (where it has no run.sh; empty: a training loop only),
``in_scope`` (false: nothing that labels or config show), and two parts:

- ``allowed``: ``codes`` that name the true cause, or confirm a cause of ``explain``; ``partial``: true, not the cause;
  ``causes``: claims, see below; ``places`` (parts of a finding's places) and ``config`` (key -> values, "*": all) that
  an answer with any other code may name.
- ``forbidden``: ``codes`` and ``causes`` that must not come first; ``config`` that no edit may offer; ``files``:
  options of `mmguard fix` ("*": all, "clamp": a fix without options) that no edit may offer; ``all_clear``: patterns of
  commands that must not say all-clear, each without the name of the program (`scan fixed*`; `dry-run cfg.py *-batches`
  for a property that passes); ``claims``: ``labels_fine`` (an all-clear),
  ``about_labels`` (an error about labels that is not among the allowed ones), ``trace_valid`` (trace exits 0).

``causes`` names the causes of ``explain`` that no code confirms, by a pattern.
"""

from __future__ import annotations

import ast
import json
import math
import re
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

TRUTH = Path(__file__).with_name('truth.json')
REBUILT = Path(__file__).with_name('rebuilt')
#: Beginnings of the codes of errors in logs, and of findings about labels.
ERRORS = ('MG4', 'MG583', 'MG584', 'MG585', 'MG586')
LABELS = ('MG1', *(f'MG{number}' for number in (*range(393, 399), 580, 581, 582)))
CLAIMS = ('labels_fine', 'about_labels', 'trace_valid')
CLEAN = ('MG100', 'MG195')

#: What `explain` is given in addition to a log.
OPTIONS = ('--config', '--data')

#: Outcomes of a property of `dry-run` that is not broken, before and since it runs the first batches.
PASSED = ('holds', 'ran')

#: In place of values: whatever is given.
ALL_VALUES = '*'

SEVERITIES = ('error', 'warning', 'info')

#: Of a cause with the tag "the log points to it"; of one that a finding confirms.
SUPPORTED, CONFIRMED = ('supported', 'confirmed')

#: Standing of a cause -> what it adds to its place.
DOUBT = {SUPPORTED: 0.1, 'possible': 0.2}

#: What came of an edit: built and called with it, offered without, nobody asked, no edit but a line of text.
STATES = VERIFIED, NOT_VERIFIED, NOT_ASKED = ('verified', 'not verified', 'not asked')
TEXT = 'text'

#: In place of an option: `mmguard fix` clamps boxes and drops what training cannot use.
CLAMP = 'clamp'

Pair = Tuple[str, Any]


class SaidEdit(NamedTuple):
    """An edit, or what a finding says to write.

    Attributes:
        pairs (list): (key, value) of the config and of options.
        options (list[str]): Options of `mmguard fix`.
        asks (bool): True if it has a question.
        state (str): ``'verified'``, ``'not verified'``, ``'not asked'`` or ``'text'``.
    """

    pairs: List[Pair]
    options: List[str]
    asks: bool = False
    state: str = TEXT


class Said(NamedTuple):
    """A finding, or a cause that explain lists.

    Attributes:
        codes (tuple[str]): The code of a finding; the codes that confirm a cause.
        causes (tuple[str]): The claims of truth.json that a cause makes.
        places (tuple[str]): Places of the config.
        edits (tuple[SaidEdit]): Its edits, in their order.
        weight (str): ``'error'``, ``'warning'``, ``'info'``; of a cause ``'error'`` where something supports it.
        key (str): The name of a cause that is tagged "the log points to it"; else empty.
        quote (str): The line of the log that is quoted for a tagged cause.
    """

    codes: Tuple[str, ...]
    causes: Tuple[str, ...] = ()
    places: Tuple[str, ...] = ()
    edits: Tuple[SaidEdit, ...] = ()
    weight: str = 'error'
    key: str = ''
    quote: str = ''


class Tag(NamedTuple):
    """A cause with the tag "the log points to it": its key, and True if a line of the log is quoted, if it is true."""

    key: str
    is_quoted: bool
    is_true: bool


class Verdict(NamedTuple):
    """What the answers to a report are worth.

    Attributes:
        first (float): 1: an answer begins with the true cause, and none with a forbidden one; 0.5: it is said.
        harm (tuple[str]): Forbidden values and claims; empty: none.
        all_clears (tuple[str]): Commands that say all-clear over what is broken.
        later (tuple[str]): Forbidden values that only a later edit of a finding offers, with a question.
        tags (tuple[Tag]): Causes that a line of a log is said to support, of all commands.
        edits (tuple[str]): The state of each edit that is offered.
        is_closed (bool): True if an edit writes what the true cause needs.
    """

    first: float
    harm: Tuple[str, ...] = ()
    all_clears: Tuple[str, ...] = ()
    later: Tuple[str, ...] = ()
    tags: Tuple[Tag, ...] = ()
    edits: Tuple[str, ...] = ()
    is_closed: bool = False


def read_truth() -> Dict[str, Dict[str, Any]]:
    """Return report -> what it allows and forbids."""
    return json.loads(TRUTH.read_text())['reports']


def read_causes() -> Dict[str, str]:
    """Return claim -> pattern of the causes of explain that make it."""
    return json.loads(TRUTH.read_text())['causes']


def judge_report(truth: Dict[str, Any], answers: Sequence[Dict[str, Any]]) -> Verdict:
    """Judge the answers to a report: (arguments, exit code, JSON) of each command."""
    allowed, forbidden = truth.get('allowed', {}), truth.get('forbidden', {})
    harm: List[str] = []
    later: List[str] = []
    all_clears: List[str] = []
    firsts, tags, states = [], [], []
    half, is_clean, is_dirty, is_closed = False, False, False, False
    for answer in answers:
        said = list(read_answer(answer['json'] or {}))
        faulty = [one for one in said if one.weight != 'info']
        is_known = any(rate(one, allowed) > 0 for one in said)
        all_clears += (
            []
            if is_known
            else [
                call
                for call in find_all_clears(answer)
                for pattern in forbidden.get('all_clear', ())
                if fnmatch(call, pattern)
            ]
        )
        if answer['args'][0] == 'scan':
            is_clean |= not faulty and any(one.codes[0] in CLEAN for one in said)
            is_dirty |= bool(faulty)
        if answer['args'][0] == 'trace' and answer['exit'] == 0 and 'trace_valid' in forbidden.get('claims', ()):
            harm.append('trace_valid')
        for place, one in enumerate(said):
            value = rate(one, allowed)
            half |= value > 0
            if one.key:
                tags.append(Tag(one.key, is_quoted(one.quote, answer.get('log', one.quote)), value > 0))
            is_first = place == 0
            if is_first and is_forbidden(one, forbidden):
                harm.append(f'{"/".join([*one.codes[:1], *one.causes])} first')
                value = -1.0
            if is_first:
                firsts.append(value)
            if 'about_labels' in forbidden.get('claims', ()) and not value and about_labels(one, is_first):
                harm.append(f'about_labels: {one.codes[0]}')
            for number, edit in enumerate(one.edits):
                states += [edit.state] if edit.state != TEXT else []
                is_wanted = any(is_among(pair, allowed.get('config', {})) for pair in edit.pairs)
                harmful = [] if is_wanted else list(find_forbidden(edit, forbidden))
                is_closed |= edit.state != TEXT and (is_wanted or (value == 1 and not harmful))
                (later if number and edit.asks else harm).extend(f'{one.codes[0]}: {part}' for part in harmful)
    if is_clean and not is_dirty and 'labels_fine' in forbidden.get('claims', ()):
        harm.append('labels_fine')
    first = max(firsts, default=0.0)
    if min(firsts, default=0.0) < 0 or first < 1:
        first = 0.5 if half else 0.0
    once = (tuple(dict.fromkeys(found)) for found in (harm, all_clears, later))
    return Verdict(first, *once, tuple(tags), tuple(states), is_closed)


def find_all_clears(answer: Dict[str, Any]) -> Iterator[str]:
    """Yield the commands, each with a property that holds, that exit with 0, or refute every cause of a known error."""
    said, call = answer['json'] or {}, ' '.join(answer['args'])
    properties = said.get('properties', ())
    is_clean = answer['exit'] == 0 and (bool(said) or answer['args'][0] == 'fix')
    is_refuted = bool((said.get('error') or {}).get('code')) and not said.get('causes') and not said.get('more')
    if is_clean or is_refuted:
        yield call
    yield from (f'{call} {one["name"]}' for one in properties if one['outcome'] in PASSED)


def rank_cause(truth: Dict[str, Any], answer: Dict[str, Any]) -> float:
    """Return the place of the true cause in what `explain` says, from 0; infinite if it is not said.

    Of two equal places the one with more evidence is the better: less than 1 is added if nothing confirms the cause.
    """
    said = answer['json'] or {}
    rates = [rate(one, truth.get('allowed', {})) for one in read_answer(said)]
    if 1.0 not in rates:
        return math.inf
    place = rates.index(1.0)
    causes = said.get('causes', ())
    return place + (DOUBT.get(causes[place]['standing'], 0.0) if place < len(causes) else 0.0)


def compare_ranks(truth: Dict[str, Any], answers: Sequence[Dict[str, Any]]) -> Iterator[Tuple[str, float, float]]:
    """Yield each call of `explain` with config or labels, and the ranks of the true cause without and with them."""
    explained = [one for one in answers if one['args'][0] == 'explain' and one['exit'] in (0, 1)]
    bare = {one['args'][1]: rank_cause(truth, one) for one in explained if not {*one['args']} & {*OPTIONS}}
    for one in explained:
        if {*one['args']} & {*OPTIONS} and one['args'][1] in bare:
            yield ' '.join(one['args']), bare[one['args'][1]], rank_cause(truth, one)


def find_forbidden(edit: SaidEdit, forbidden: Dict[str, Any]) -> Iterator[str]:
    """Yield what an edit must not write."""
    for key, given in edit.pairs:
        if is_among((key, given), forbidden.get('config', {})):
            yield f'{key}={cut(given)}'
    files = forbidden.get('files', ())
    yield from (f'fix --{option}' for option in edit.options if option in files or '*' in files)


def is_quoted(quote: str, log: str) -> bool:
    """True if a line is quoted that is in the log; colors and spaces do not count."""
    lines = [' '.join(re.sub(r'\x1b\[[\d;]*m', '', text).split()) for text in (quote, log)]
    return bool(lines[0]) and lines[0] in lines[1]


def read_answer(said: Dict[str, Any]) -> Iterator[Said]:
    """Yield what the JSON of a command says, the most severe first; the causes of a log in their order."""
    code = (said.get('error') or {}).get('code')
    causes = said.get('causes', ())
    for cause in causes:
        claims = tuple(claim for claim, pattern in read_causes().items() if re.search(pattern, str(cause), re.I))
        is_tagged = cause['standing'] == SUPPORTED
        # What was found is said of a cause that a finding confirms, and not what else could confirm it.
        codes = cause.get('findings') or cause['codes']
        yield Said(
            (*codes, *filter(None, [code])),
            claims,
            edits=tuple(read_edits({'lines': re.findall(r'`([^`]+)`', str(cause))})),
            weight='error' if cause['standing'] in (SUPPORTED, CONFIRMED) else 'info',
            key=cause.get('key') or code or '' if is_tagged else '',
            quote=(cause.get('evidence') or {}).get('text', ''),
        )
    yield from (Said((found,)) for found in said.get('more', ()))
    if code and not causes:
        yield Said((code,))
    found = [one for part in [said, *said.get('datasets', ())] for one in part.get('findings', ())]
    found += [
        dict(code=result['data']['code'], severity='warning')
        for one in said.get('properties', ())
        for result in one.get('results', ())
        if 'code' in result['data']
    ]
    for one in sorted(found, key=lambda one: SEVERITIES.index(one['severity'])):
        yield Said((one['code'],), (), tuple(one.get('places', ())), tuple(read_edits(one)), one['severity'])


def read_edits(finding: Dict[str, Any]) -> Iterator[SaidEdit]:
    """Yield the edits of a finding; what it only says to write is one edit more, and asks as the first one does."""
    edits = finding.get('edits', ())
    for edit in edits:
        pairs = [*nested(edit.get('config') or {}), *nested(edit.get('options') or {})]
        more, options = read_lines([*(edit.get('lines') or ()), *(edit.get('commands') or ())])
        files = [pair for values in (edit.get('files') or {}).values() for pair in dict(values).items()]
        # What dataset.json says is no label file.
        options += [option for option, _ in files if option != 'dataset_json']
        pairs += [*more, *nested({key: value for key, value in files if key != 'num_classes'})]
        # A guard repeats the number of classes in a pipeline: it does not change it.
        kept = [(key, value) for key, value in pairs if not ('pipeline' in key and key.endswith('num_classes'))]
        state = {True: VERIFIED, False: NOT_VERIFIED}.get(edit.get('verified'), NOT_ASKED)
        yield SaidEdit(kept, options, bool(edit.get('question')), state)
    if not edits:
        yield SaidEdit(*read_lines(finding.get('lines') or ()))


def read_lines(lines: Sequence[str]) -> Tuple[List[Pair], List[str]]:
    """Return the values that config lines set and commands give, and the options of `mmguard fix`."""
    pairs: List[Pair] = []
    options = []
    for line in lines:
        if 'Guard' in line:
            line = re.sub(r'num_classes=\d+', '', line)
        for key, text in re.findall(r'([\w.]+) ?= ?(\{[^{}]*\}|\([^()]*\)|\[[^\[\]]*\]|[\w.\'"-]+)', line):
            try:
                pairs.append((key, ast.literal_eval(text)))
            except (SyntaxError, ValueError):  # a name, or code
                continue
        if line.startswith('mmguard fix'):
            given = re.findall(r'--([a-z-]+)(?: (\S+))?', line)
            options += [name for name, _ in given if name not in ('out', 'num-classes', 'ignore-index')] or [CLAMP]
            for option, text in given:
                if option == 'label-map':
                    pairs.append(('label_map', dict(part.split(':') for part in text.split(','))))
    return pairs, options


def nested(value: Any, path: str = '') -> Iterator[Pair]:
    """Yield (path, value) of a value and all that it holds."""
    if path:
        yield path, value
    if isinstance(value, dict) and not path.endswith('label_map'):
        for key, inner in value.items():
            yield from nested(inner, f'{path}.{key}' if path else str(key))
    elif isinstance(value, list) and not path.endswith('label_map'):
        for inner in value:
            if isinstance(inner, dict):
                yield from nested(inner, path)


def is_among(pair: Pair, wanted: Dict[str, Any]) -> bool:
    """True if a pair sets one of the values, or for a map of labels one of its entries."""
    key, value = pair
    for name, values in wanted.items():
        if key != name and not key.endswith(f'.{name}'):
            continue
        if values == ALL_VALUES:
            return True
        if name == 'label_map':
            entries = value.items() if isinstance(value, dict) else value
            if any([int(old), int(new)] in values for old, new in entries if str(old).lstrip('-').isdigit()):
                return True
        elif (list(value) if isinstance(value, tuple) else value) in values:
            return True
    return False


def rate(said: Said, allowed: Dict[str, Any]) -> float:
    """1: it is the true cause; 0.5: true, and not the cause; 0: neither."""
    if set(said.codes) & set(allowed.get('codes', ())) or set(said.causes) & set(allowed.get('causes', ())):
        return 1.0
    if any(part in place for part in allowed.get('places', ()) for place in said.places):
        return 1.0
    if any(is_among(pair, allowed.get('config', {})) for edit in said.edits for pair in edit.pairs):
        return 1.0
    return 0.5 if set(said.codes) & set(allowed.get('partial', ())) else 0.0


def is_forbidden(said: Said, forbidden: Dict[str, Any]) -> bool:
    """True if it must not come first; of a cause its first code counts."""
    return said.codes[0] in forbidden.get('codes', ()) or bool(set(said.causes) & set(forbidden.get('causes', ())))


def about_labels(said: Said, is_first: bool) -> bool:
    """True if it is an error about labels; of causes only the first, where the log is said to support it."""
    codes = [code for code in said.codes if not code.startswith(ERRORS)]
    if not codes or said.weight == 'info' or not all(code.startswith(LABELS) for code in codes):
        return False
    return len(said.codes) == 1 or is_first


def cut(value: Any) -> str:
    text = str(value)
    return text if len(text) < 60 else f'{text[:57]}...'


def print_verdicts(answers: Dict[str, Any], verbose: bool) -> int:
    """Print the verdicts, by report and together; return the exit code of `answers.py judge`."""
    causes = ' '.join(
        str(cause) for found in answers.values() for one in found for cause in (one['json'] or {}).get('causes', ())
    )
    for claim, pattern in read_causes().items():
        if not re.search(pattern, causes, re.I):
            print(f'no answer makes the claim {claim} ({pattern})')
    verdicts: Dict[str, Optional[Verdict]] = {}
    for name, truth in read_truth().items():
        found = [one for one in answers.get(name, ()) if one['args'][0] != 'apply']
        verdicts[name] = judge_report(truth, found) if found else None
        one = verdicts[name]
        if one is None:
            print(f'{name}: no answer')
        elif verbose or one.harm or one.later or one.all_clears:
            later = f'; behind a question: {", ".join(one.later)}' if one.later else ''
            clears = f'; all-clear: {", ".join(one.all_clears)}' if one.all_clears else ''
            print(f'{name}: first {one.first:g}; {", ".join(one.harm) or "no harm"}{clears}{later}')
    sets_by_title = {'set0 to set3': 'set', 'b0 to c0': 'bc', 'd0': 'd', 'e0': 'e0', 'e1': 'e1', 'all': 'sbcde'}
    for title, sets in sets_by_title.items():
        named = (
            name for name in verdicts if (name.startswith(sets) if sets in ('e0', 'e1', 'set') else name[0] in sets)
        )
        chosen = {name: one for name in named for one in [verdicts[name]] if one is not None}
        scope = [one for name, one in chosen.items() if read_truth()[name].get('in_scope', True)]
        claims = sum(any(part.split(':')[0] in CLAIMS for part in one.harm) for one in chosen.values())
        print(
            f'{title}: {len(chosen)} reports; first right {sum(one.first for one in chosen.values()):g} '
            f'(in scope {sum(one.first for one in scope):g} of {len(scope)}); '
            f'harmful {sum(bool(one.harm) for one in chosen.values())} ({claims} of them by a claim); '
            f'false all-clears {sum(bool(one.all_clears) or "labels_fine" in one.harm for one in chosen.values())}; '
            f'behind a later question {sum(bool(one.later) for one in chosen.values())}'
        )
        tags = [(name, tag) for name, one in chosen.items() for tag in one.tags]
        untrue = dict.fromkeys(f'{name} {tag.key}' for name, tag in tags if not tag.is_true)
        print(
            f'  "the log points to it": {len(tags)}, {sum(tag.is_quoted for _, tag in tags)} with a line of the log, '
            f'{sum(not tag.is_true for _, tag in tags)} on a cause that is not the true one'
        )
        edits = [state for one in chosen.values() for state in one.edits]
        print(
            f'  edits: {len(edits)} ({", ".join(f"{edits.count(state)} {state}" for state in STATES)}); '
            f'{sum(one.is_closed for one in chosen.values())} reports closed by one'
        )
        if verbose and untrue:
            print(f'  not the true cause: {", ".join(untrue)}')
    return 0


def print_ranks(answers: Dict[str, Any]) -> int:
    """Print in which reports config or labels move the true cause of a log; return 1 if one moves down."""
    moved: Dict[str, List[str]] = {'worse': [], 'better': [], 'same': []}
    for name, truth in read_truth().items():
        for call, before, after in compare_ranks(truth, answers.get(name, ())):
            moved['worse' if after > before else 'better' if after < before else 'same'].append(name)
            print(f'{name}: {call}: {before:g} -> {after:g}')
    print('; '.join(f'{way} in {len(names)} calls of {len({*names})} reports' for way, names in moved.items()))
    return int(bool(moved['worse']))
