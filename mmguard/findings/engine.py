"""Diagnosis: functions that run the rules and try their edits, for `check`, `scan`, `report` and the hooks."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, Type

from mmguard.config.changes import change_config
from mmguard.config.read import ReadConfig
from mmguard.config.tree import walk
from mmguard.errors import CannotRun
from mmguard.facts.config import collect_config_facts
from mmguard.facts.labels import FileChanges, LabelFacts
from mmguard.findings.config_edits import guard_evaluation
from mmguard.findings.edits import Edit
from mmguard.findings.finding import ERROR, WARNING, Finding
from mmguard.findings.order import sort_key
from mmguard.findings.plugins import check_findings, contain_failure, list_rules
from mmguard.findings.rule import AllClear, Facts, Reread, Rule
from mmguard.labels.instances import describe_boxes
from mmguard.language import Message, as_message, join
from mmguard.text import quantity

#: Function that compares a program before and after an edit; returns ``state`` (``'verified'``, ...) and ``reason``.
Verifier = Callable[[ReadConfig, ReadConfig], Any]


def diagnose(
    labels: Optional[LabelFacts] = None,
    config: Optional[ReadConfig] = None,
    rules: Optional[Sequence[Type[Rule]]] = None,
    options: Optional[Mapping[str, Any]] = None,
    reread: Optional[Reread] = None,
    others: Sequence[Facts] = (),
    **more: Any,
) -> List[Finding]:
    """Return all findings that the facts support, the most likely first, each with the edits that correct it.

    Args:
        labels (LabelFacts, optional): Facts about the labels.
        config (ReadConfig, optional): The config.
        rules (list[type], optional): Rules to check. Default: all.
        options (dict, optional): Options of the command line, used without a config.
        reread (callable, optional): Reads the labels again with a changed config and changed options. If ``labels`` are
            given without ``reread``, no edit is offered.
        others (list[Facts]): Facts about the other splits of the config, where an edit must be correct, too.
        more: Other fields of ``Facts``: ``siblings``, ``environment``, ``run``, ``ranks``.
    """
    if labels is not None and labels.config is None and config is not None:
        labels.config = collect_config_facts(config)
    facts = Facts(labels, config, dict(options or {}), reread, tuple(others), **more)
    asked = select_rules() if rules is None else rules
    by_code = {rule.code: rule for rule in asked}
    found = search(facts, asked)
    splits = [Split(facts, found), *(Split(other, search(other, asked)) for other in facts.others if found)]
    return [_try_edits(finding, by_code[finding.code], splits, asked) for finding in found]


def _try_edits(finding: Finding, rule: Type[Rule], splits: Sequence[Split], rules: Sequence[Type[Rule]]) -> Finding:
    facts = splits[0].facts
    if facts.labels is not None and facts.reread is None:
        return finding  # the labels cannot be read again
    edits: List[Edit] = []
    with contain_failure(rule):
        for edit in [guard_evaluation(facts, one) if one.config else one for one in rule().edits(finding, facts)]:
            # Of edits with the same question (one for all splits, one for this), offer only the first.
            same = not finding.places and any(edit.question == known.question for known in edits)
            if not same and holds(edit, finding, splits, rules):
                was_read = bool(edit.files or (edit.options and not edit.config))
                edits += ask_about_dropped_objects(replace(edit, verified=was_read or None), splits)
    return _offer(finding, edits)


def _offer(finding: Finding, edits: Sequence[Edit]) -> Finding:
    """Return a finding with ``edits``. Its advice becomes the next step for the answer "no" to the last question."""
    if edits and edits[-1].question and not edits[-1].if_not:
        edits = [*edits[:-1], replace(edits[-1], if_not=finding.advice)]
    return replace(finding, edits=tuple(edits))


def verify_edits(findings: Sequence[Finding], config: ReadConfig, verifier: Verifier) -> List[Finding]:
    """Drop the config edits that break the program, and mark edits that could not be verified.

    Edits keep their numbers: `mmguard apply --edit N` writes the edit shown as ``[N]``.

    Args:
        findings (list[Finding]): Findings with numbered edits.
        config (ReadConfig): The config that the edits change.
        verifier (callable): Compares the program before and after an edit.
    """
    return [_add_verdicts(finding, config, verifier) for finding in findings]


def _add_verdicts(finding: Finding, config: ReadConfig, verifier: Verifier) -> Finding:
    kept: List[Edit] = []
    for edit in finding.edits:
        if not edit.config or edit.files:  # a config for other files cannot be built before they are written
            kept.append(edit)
        elif edit.is_manual:
            kept.append(replace(edit, verified=False, doubt=Message('you must fill in the values')))
        else:
            verdict = verifier(config, change_config(config, edit.config))
            if verdict.state != 'broken':
                kept.append(replace(edit, verified=verdict.state == 'verified', doubt=verdict.reason))
    return _offer(finding, kept)


def select_rules(select: Sequence[str] = (), ignore: Sequence[str] = ()) -> List[Type[Rule]]:
    """Return the rules with the selected codes, except for those with ignored codes.

    Args:
        select (list[str]): Codes, or beginnings of codes (``MG21``); empty: all.
        ignore (list[str]): Codes, or beginnings of codes, to leave out.

    Raises:
        ValueError: A code does not match any rule.
    """
    known = list_rules()
    unknown = [code for code in (*select, *ignore) if not any(_has(rule, [code]) for rule in known)]
    if unknown:
        raise ValueError(f'unknown code: {", ".join(unknown)}. Known codes: {", ".join(r.code for r in known)}')
    return [rule for rule in known if (not select or _has(rule, select)) and not _has(rule, ignore)]


def _has(rule: Type[Rule], codes: Sequence[str]) -> bool:
    return any(code.startswith(tuple(codes)) for code in (rule.code, *rule.aliases))


def search(facts: Facts, rules: Sequence[Type[Rule]], failed: Optional[Set[str]] = None) -> List[Finding]:
    """Return all findings that the facts support, the most certain first.

    If no finding is about the labels, and all labels were read, MG100 ("Your labels are fine") is the last finding.

    Args:
        failed (set[str], optional): If a rule of another package raises an exception, its code is added to this set.
    """
    chosen = [rule for rule in rules if any(getattr(facts, name) not in (None, ()) for name in rule.looks_at)]
    found: List[Finding] = []
    blamed = False
    for rule in chosen:
        if not issubclass(rule, AllClear):
            with contain_failure(rule, failed):
                findings = check_findings(rule, list(rule().find(facts)))
                found += findings
                blamed = blamed or (rule.about_labels and bool(findings))
    found = _drop_consequences(sorted(found, key=sort_key))
    if not blamed:
        for rule in chosen:
            if issubclass(rule, AllClear):
                with contain_failure(rule, failed):
                    found += check_findings(rule, list(rule().find(facts)))
    return found


def _drop_consequences(findings: Sequence[Finding]) -> List[Finding]:
    kept: List[Finding] = []
    for finding in findings:
        if not any(cause.explains(finding) for cause in kept):
            kept.append(finding)
    return kept


def apply_edit(edit: Edit, facts: Facts) -> Optional[Facts]:
    """Return the facts after an edit, or ``None`` if the edit does not apply or the labels cannot be read again."""
    try:
        config = facts.config if facts.config is None else change_config(facts.config, edit.config)
    except (LookupError, TypeError):  # the path does not exist
        return None
    options = {**facts.options, **edit.options}
    labels = facts.labels
    if labels is not None:
        try:
            labels = None if facts.reread is None else facts.reread(config, options, edit.files)
        except (CannotRun, OSError, ValueError):  # like a scan does: the files cannot be read or copied
            return None
        if labels is None:
            return None
    environment = facts.environment and facts.environment.apply_changes(edit.environment)
    return facts._replace(labels=labels, config=config, options=options, environment=environment)


class Split(NamedTuple):
    """Facts about a split of the data (train, val, test), and the findings in this split."""

    facts: Facts
    found: Sequence[Finding]


def holds(edit: Edit, finding: Finding, splits: Sequence[Split], rules: Sequence[Type[Rule]]) -> bool:
    """Return True if an edit is correct: apply it, and check all rules again in every split.

    The finding must be gone, no new error may appear, and the training must keep every class and every label.
    """
    return all(_passes_recheck_in(edit, finding, *split, rules) for split in splits)


def _passes_recheck_in(
    edit: Edit, finding: Finding, facts: Facts, before: Sequence[Finding], rules: Sequence[Type[Rule]]
) -> bool:
    # An edit that rewrites files must not cause new warnings either, about boxes or ids that look wrong.
    grave = (ERROR, WARNING) if edit.files else (ERROR,)
    known: Set[str] = {found.code for found in before if found.severity in grave}
    if facts.labels is not None and facts.labels.annotations is not None and facts.labels.annotations.images_spoiled:
        known.add('MG146')  # an image that loses its faulty targets has no more to train on than before
    after = apply_edit(edit, facts)
    if after is None:
        return False
    failed: Set[str] = set()
    again = search(after, rules, failed)
    if finding.code in failed or any(found.code == finding.code and _is_same(found, finding) for found in again):
        return False
    if {found.code for found in again if found.severity in grave} - known:
        return False
    if facts.labels is None or after.labels is None:
        return True
    if _leaves_out_classes(facts.labels, after.labels) and not _lists(facts.config, after.labels.class_names):
        return False
    is_here = any(found.code == finding.code and _is_same(found, finding) for found in before)
    return _keeps_training_data(edit, facts.labels, after.labels, is_here)


#: Maximum share and number of trainable objects that an edit may leave out; more are probably not mistakes.
SMALL_SHARE, FEW = 0.01, 3


def ask_about_dropped_objects(edit: Edit, splits: Sequence[Split]) -> List[Edit]:
    """Return ``[edit]`` with a question that says how many objects it drops, if any, or [] if it drops too many."""
    before = [_count_objects(facts.labels) for facts, _ in splits]
    after = [_count_objects((apply_edit(edit, facts) or facts).labels) for facts, _ in splits if edit.files] or before
    (objects, taught), (left, taught_after) = (
        map(sum, zip(*(one[:2] for one in counts))) for counts in (before, after)
    )
    if left >= objects:
        return [edit]
    if taught - taught_after > max(FEW, SMALL_SHARE * taught):
        return []
    count = Message('{number:,} of {objects}', number=objects - left, objects=quantity(objects, 'object'))
    faults: Counter[str] = Counter()  # `fix` also leaves out the objects of other findings
    for one in before:
        faults.update(one[2])
    for one in after:
        faults.subtract(one[2])
    why = join(', ', describe_boxes(+faults))
    question = Message('Can {count} be dropped ({why})?' if why else 'Can {count} be dropped?', count=count, why=why)
    if edit.question:
        count = join(': ', filter(None, (count, why)))
        question = Message('{question:unasked} ({count})?', question=as_message(edit.question), count=count)
    return [replace(edit, question=question)]


def _count_objects(labels: Optional[LabelFacts]) -> Tuple[int, int, Counter[str]]:
    """Return the numbers of all objects and of those to train on, both with unreadable objects, and {fault: number}."""
    found = None if labels is None else labels.annotations
    if labels is None or found is None:
        return 0, 0, Counter()
    refused = labels.yolo.rows - found.annotations if labels.yolo is not None else 0
    invalid = max(sum(labels.values.values()), sum(labels.coco.unnamed.values()))
    faults = Counter({**labels.reasons, 'with an invalid label': invalid, 'that cannot be read': refused})
    return found.annotations + refused, sum(found.usable.values()) + invalid + refused, faults


def cache_reread(reread: Reread) -> Reread:
    """Cache ``reread`` by config, options and files, because several findings try the same edit."""
    known: Dict[str, Optional[LabelFacts]] = {}

    def read(config: Optional[ReadConfig], options: Mapping[str, Any], files: FileChanges) -> Optional[LabelFacts]:
        key = repr((None if config is None else config.data, options, files))
        if key not in known:
            known[key] = reread(config, options, files)
        return known[key]

    return read


def _is_same(one: Finding, other: Finding) -> bool:
    return not one.places or bool(set(one.places) & set(other.places))


def _keeps_training_data(edit: Edit, before: LabelFacts, after: LabelFacts, is_here: bool) -> bool:
    """Return True if an edit reduces neither the number of trained classes nor the number of trained elements.

    A split without the finding (``is_here`` is False) must also not start to train on pixels that it ignored: 255 may
    mark an object in one split and unlabeled pixels in another.
    """
    if before.maps is not None and after.maps is not None and before.maps.sources != after.maps.sources:
        return bool(count_trained_classes(after))  # other files, whose counts cannot be compared
    # A split without the finding may use these numbers for classes.
    nothing = edit.unlabelled if is_here else ()
    old = {label: count for label, count in _count_meant(before).items() if label not in nothing}
    new = count_trained_classes(after)
    if not new or len(new) < len(old) or sum(new.values()) < sum(old.values()):
        return False
    awake = before.kind == 'pixels' and before.ignore_index == after.ignore_index and not _is_misread(before)
    return is_here or not awake or before.num_classes != after.num_classes or sum(new.values()) == sum(old.values())


def _leaves_out_classes(before: LabelFacts, after: LabelFacts) -> bool:
    """Return True if the class list after an edit lacks categories of the data that the old list contained."""
    old, new = (
        {name for name, count in labels.annotations.left_out_names.items() if count} if labels.annotations else set()
        for labels in (before, after)
    )
    was_chosen = bool(count_trained_classes(before))
    return before.class_names != after.class_names and bool(new - old if was_chosen else new)


def _lists(config: Optional[ReadConfig], names: Sequence[str]) -> bool:
    """Return True if a config contains this class list anywhere: then the user has chosen the list."""
    values = (value for _, part in walk({} if config is None else config.data) for value in part.values())
    return any(isinstance(value, (list, tuple)) and list(value) == list(names) for value in values)


def _count_meant(labels: LabelFacts) -> Dict[int, int]:
    """Return {class: number of elements}; count the values stored in the files if the loader misreads them."""
    if not _is_misread(labels) or labels.maps is None:
        return count_trained_classes(labels)
    return count_trained_classes(replace(labels, histogram=labels.maps.raw))


def _is_misread(labels: LabelFacts) -> bool:
    return labels.maps is not None and bool(labels.maps.loaded_otherwise)


def count_trained_classes(labels: LabelFacts) -> Dict[int, int]:
    """Count the trained elements of each class, as {class: count}."""
    counts = labels.histogram if labels.annotations is None else labels.annotations.usable
    return {
        label: count
        for label, count in counts.items()
        if count and label not in (labels.ignore_index, *labels.values) and 0 <= label < labels.num_classes
    }


def diagnose_for(framework: str, labels: LabelFacts, roots: Sequence[str] = ()) -> List[Finding]:
    """Return all findings that the facts support, the most certain first, with advice for a framework.

    Args:
        framework (str): ``'pytorch'`` (run only rules with advice for plain PyTorch) or ``'nnunet'``; else OpenMMLab.
        labels (LabelFacts): Facts about the labels.
        roots (sequence of str): Data roots; for nnU-Net, its raw folder.
    """
    if framework == 'nnunet':
        advice = ' '.join(advise_nnunet(roots[0] if roots else '$nnUNet_raw/DATASET'))
        return [replace(finding, advice=advice) for finding in diagnose(labels)]
    is_pytorch = framework == 'pytorch'
    rules = [rule for rule in select_rules() if rule.pytorch or not is_pytorch]
    return diagnose(labels, rules=rules, options={'framework': framework} if is_pytorch else {})


def advise_nnunet(raw_folder: str) -> Sequence[str]:
    """Return the advice for wrong labels in nnU-Net, one sentence on two lines."""
    return (
        Message('Run `mmguard scan {raw_folder}` to list the files and slices,', raw_folder=raw_folder),
        'then correct the label files (or dataset.json) and preprocess again.',
    )
