"""From facts to findings with what to write: what `check`, `scan`, `report` and the hooks ask."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, List, Mapping, Optional, Sequence, Type

from mmguard.config.changes import changed
from mmguard.config.read import ReadConfig
from mmguard.findings.config_facts import facts_of_config
from mmguard.findings.edits import MANUAL, Edit, Split, holds
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import Finding
from mmguard.findings.rule import Facts, Reread, Rule
from mmguard.findings.rules import RULES
from mmguard.findings.search import search
from mmguard.findings.usual_edits import guard_evaluation

#: Compares a program before and after an edit: has ``state`` (``'verified'``, ``'broken'``, ...) and ``reason``.
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
    """All findings that the facts support, the most likely first, each with the edits that were tried and hold.

    Args:
        labels (LabelFacts, optional): What is known of the labels.
        config (ReadConfig, optional): The config.
        rules (list[type], optional): The rules to look with; by default all that are not on request.
        options (dict, optional): What the user said on the command line, where no config does.
        reread (callable, optional): Gives the labels as they will be with another config and other options; without it
            edits are offered only where the config alone decides.
        others (list[Facts]): The other splits of the config: an edit must be right there, too.
        more: More of ``Facts``: ``environment``, ``run``, ``ranks``.
    """
    if labels is not None and labels.config is None and config is not None:
        labels.config = facts_of_config(config)
    facts = Facts(labels, config, dict(options or {}), reread, tuple(others), **more)
    asked = chosen_rules() if rules is None else rules
    by_code = {rule.code: rule() for rule in asked}
    found = search(facts, asked)
    splits = [Split(facts, found), *(Split(other, search(other, asked)) for other in facts.others if found)]
    return [_with_edits(finding, by_code[finding.code], splits, asked) for finding in found]


def _with_edits(finding: Finding, rule: Rule, splits: Sequence[Split], rules: Sequence[Type[Rule]]) -> Finding:
    facts = splits[0].facts
    if facts.labels is not None and facts.reread is None:
        return finding  # nobody can look again
    candidates = [guard_evaluation(facts, edit) for edit in rule.edits(finding, facts)]
    edits: List[Edit] = []
    for edit in candidates:
        # About labels: of those that mean the same (in all splits, in this alone) the first.
        same = not finding.places and any(edit.question == known.question for known in edits)
        if not same and holds(edit, finding, splits, rules):
            was_read = bool(edit.files or (edit.options and not edit.config))
            edits.append(replace(edit, verified=was_read or None))
    return replace(finding, edits=tuple(edits))


def verify_edits(findings: Sequence[Finding], config: ReadConfig, verifier: Verifier) -> List[Finding]:
    """Keep the edits of a config that break nothing of the program, and mark those that could not be verified.

    Numbers stay: `mmguard apply --edit N` writes what was shown as ``[N]``.

    Args:
        findings (list[Finding]): With numbered edits.
        config (ReadConfig): What the edits change.
        verifier (callable): Compares the program before and after an edit.
    """
    return [_with_verdicts(finding, config, verifier) for finding in findings]


def _with_verdicts(finding: Finding, config: ReadConfig, verifier: Verifier) -> Finding:
    kept: List[Edit] = []
    for edit in finding.edits:
        if not edit.config or edit.files:  # a config for other files cannot be built before they are written
            kept.append(edit)
        elif edit.applicability == MANUAL:
            kept.append(replace(edit, verified=False, doubt='its values are yours to write'))
        else:
            verdict = verifier(config, changed(config, edit.config))
            if verdict.state != 'broken':
                kept.append(replace(edit, verified=verdict.state == 'verified', doubt=verdict.reason))
    return replace(finding, edits=tuple(kept))


def chosen_rules(select: Sequence[str] = (), ignore: Sequence[str] = (), everything: bool = False) -> List[Type[Rule]]:
    """The rules to look with.

    Args:
        select (list[str]): Codes, or beginnings of codes (``MG21``); empty: those that are not on request alone.
        ignore (list[str]): Codes, or beginnings of codes, to leave out.
        everything (bool): Also the rules that are looked for on request alone.

    Raises:
        ValueError: A code that no rule has.
    """
    unknown = [code for code in (*select, *ignore) if not any(_has(rule, [code]) for rule in RULES)]
    if unknown:
        raise ValueError(f'no rule has the code {", ".join(unknown)}; there are {", ".join(r.code for r in RULES)}')
    chosen = []
    for rule in RULES:
        wanted = _has(rule, select) if select else everything or not rule.on_request
        if wanted and not _has(rule, ignore):
            chosen.append(rule)
    return chosen


def _has(rule: Type[Rule], codes: Sequence[str]) -> bool:
    return any(code.startswith(tuple(codes)) for code in (rule.code, *rule.aliases))
