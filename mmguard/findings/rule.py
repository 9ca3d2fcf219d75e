"""Base classes of rules. Each rule describes one kind of mistake and finds it in the facts."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any, Callable, ClassVar, Dict, Iterable, Iterator, Mapping, NamedTuple, Optional, Sequence, Tuple

from mmguard.config.read import ReadConfig
from mmguard.facts.environment import EnvironmentFacts
from mmguard.facts.labels import FileChanges, LabelFacts
from mmguard.facts.run import RankFacts, RunFacts
from mmguard.findings.edits import Edit, format_value
from mmguard.findings.finding import ERROR, INFO, POSSIBLE, PROVEN, WARNING, Finding
from mmguard.labels.instances import LABEL_REASON
from mmguard.language import Message
from mmguard.text import join_with_and

#: Maximum number of files that a finding names; the scan's report lists them all.
MAX_FILES_NAMED = 5

#: Default certainty by severity.
USUAL_CERTAINTIES = {ERROR: PROVEN, WARNING: POSSIBLE, INFO: POSSIBLE}


#: Function that reads the labels with a changed config, options and files; it returns ``None`` if they are unknown.
Reread = Callable[[Optional[ReadConfig], Mapping[str, Any], FileChanges], Optional[LabelFacts]]


class Facts(NamedTuple):
    """All facts available to rules.

    Attributes:
        labels (LabelFacts, optional): Facts about labels, from a scan, a training or a batch.
        config (ReadConfig, optional): The config.
        options (dict): Command-line options of a scan, used without a config.
        reread (callable, optional): Reads the labels again with a changed config, options or files.
        others (tuple[Facts]): Facts about the other splits of the same config, where an edit must be correct, too.
        siblings (tuple[Facts]): Facts about the other files of a scan without a config.
        environment (EnvironmentFacts, optional): Facts about the installation.
        run (RunFacts, optional): Facts about the run.
        ranks (tuple[RankFacts]): Facts about the end of each rank, the earliest first.
    """

    labels: Optional[LabelFacts] = None
    config: Optional[ReadConfig] = None
    options: Mapping[str, Any] = MappingProxyType({})
    reread: Optional[Reread] = None
    others: Tuple[Facts, ...] = ()
    siblings: Tuple[Facts, ...] = ()
    environment: Optional[EnvironmentFacts] = None
    run: Optional[RunFacts] = None
    ranks: Tuple[RankFacts, ...] = ()


class Example(NamedTuple):
    """Minimal example of a mistake, and its correction: one or two lines of a config, of labels or of a command."""

    wrong: str
    right: str


class Rule:
    """Base class of rules: a subclass describes one kind of mistake.

    ``title`` and ``advice`` are templates with placeholders such as ``{num_classes}``; write a literal brace twice.
    Both are whole sentences, which can be translated.

    A rule reports only what is certain enough: official configs must pass without a false alarm.
    """

    #: Stable code, never reused for another rule.
    code: ClassVar[str]
    #: Codes of rules merged into this one, which `mmguard explain` still accepts.
    aliases: ClassVar[Tuple[str, ...]] = ()
    #: Codes of findings that this mistake causes, which come later in ``ORDER``; MG4xx are error messages in a log.
    follows: ClassVar[Tuple[str, ...]] = ()
    #: Mistake that the rule finds, in one line.
    summary: ClassVar[str]
    #: Title of a finding, with its numbers; empty: the summary.
    title: ClassVar[str] = ''
    #: Consequences if the mistake is not corrected.
    why: ClassVar[str]
    example: ClassVar[Example]
    #: Mistakes that the rule misses, and its false alarms.
    limits: ClassVar[str] = ''
    #: Advice if no edit is offered.
    advice: ClassVar[str]
    #: For a plugin: code of the mmguard rule before which an equally certain finding is shown; empty: after all rules.
    before: ClassVar[str] = ''
    #: Advice for plain PyTorch; empty: the rule does not apply there.
    pytorch: ClassVar[str] = ''
    severity: ClassVar[str] = ERROR
    #: Fields of ``Facts`` that the rule uses; the rule is skipped if all of them are empty.
    looks_at: ClassVar[Tuple[str, ...]] = ()
    #: Package that provides the rule, with its version; empty: mmguard.
    package: ClassVar[str] = ''
    #: True if a finding means that labels are wrong, which excludes the verdict 'Your labels are fine'.
    about_labels: ClassVar[bool] = True

    def find(self, facts: Facts) -> Iterator[Finding]:
        """Yield the findings that the facts support."""
        raise TypeError(f'{type(self).__name__} must define find()')

    def edits(self, finding: Finding, facts: Facts) -> Iterable[Edit]:
        """Return the edits to try, the most likely correction first."""
        return finding.candidates

    def report(
        self,
        evidence: str,
        words: Optional[Mapping[str, Any]] = None,
        title: str = '',
        severity: Optional[str] = None,
        edits: Sequence[Edit] = (),
        advice: str = '',
        **more: Any,
    ) -> Finding:
        """Return a finding of this rule.

        Args:
            evidence (str): Evidence of the finding.
            words (dict, optional): Values for the placeholders of title and advice.
            title (str): Template that replaces ``title``.
            severity (str, optional): Severity that replaces the rule's.
            edits (list[Edit]): Edits to try.
            advice (str): Template that replaces ``advice``.
            more: Other fields of ``Finding``: ``files``, ``places``, ``value``.
        """
        words, severity = words or {}, severity or self.severity
        more = {'certainty': USUAL_CERTAINTIES[severity], 'follows': self.follows, **more}
        return Finding(
            self.code,
            Message(title or self.title or self.summary, **words),
            evidence,
            Message(advice or self.advice, **words),
            severity=severity,
            candidates=tuple(edits),
            before=self.before,
            is_verdict=isinstance(self, AllClear),
            **more,
        )


class ConfigRule(Rule):
    """Base class of rules about a config. Facts about labels change only the certainty of their findings."""

    about_labels = False
    looks_at: ClassVar[Tuple[str, ...]] = ('config',)
    #: Kinds of labels that show the mistake without a config, in :meth:`look_in_labels`.
    kinds: ClassVar[Tuple[str, ...]] = ()

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        """Yield one finding for each path of the config with this mistake."""
        raise TypeError(f'{type(self).__name__} must define look()')

    def look_in_labels(self, labels: LabelFacts) -> Iterator[Finding]:
        """Yield the findings that the labels of a scan without a config support; by default none."""
        yield from ()

    def find(self, facts: Facts) -> Iterator[Finding]:
        if facts.config is None and facts.labels is not None and facts.labels.kind in self.kinds:
            yield from self.look_in_labels(facts.labels)
        # Mistakes in val mostly occur in test, too: one finding with both places.
        merged: Dict[Tuple[Any, ...], Finding] = {}
        for found in self.look(facts.config) if facts.config is not None else ():
            ways = tuple((edit.title, edit.question) for edit in found.candidates)
            key = (found.severity, repr(found.value), found.title, found.advice, ways)
            places, candidates = found.places, found.candidates
            if key in merged:
                places = tuple(dict.fromkeys((*merged[key].places, *places)))
                both = zip(merged[key].candidates, candidates)
                candidates = tuple(_merge_places(one, other) for one, other in both)
            evidence = Message('{places} = {value}', places=join_with_and(places), value=format_value(found.value))
            certainty = found.certainty if facts.labels is None else self.certainty_given(found, facts.labels)
            merged[key] = replace(found, places=places, candidates=candidates, evidence=evidence, certainty=certainty)
        yield from merged.values()

    def certainty_given(self, finding: Finding, labels: LabelFacts) -> str:
        """Return the certainty that a finding affects the training, given the facts about labels."""
        return finding.certainty

    def report_at(
        self,
        path: str,
        value: Any,
        words: Optional[Mapping[str, Any]] = None,
        title: str = '',
        severity: Optional[str] = None,
        edits: Sequence[Edit] = (),
    ) -> Finding:
        """Return a finding of this rule at a path of the config, with the value there."""
        evidence = Message('{places} = {value}', places=path, value=format_value(value))
        return self.report(evidence, words, title, severity, edits, places=(path,), value=value)


def _merge_places(one: Edit, other: Edit) -> Edit:
    """Return one edit with the config changes and the lines of both edits."""
    return replace(
        one,
        config=(*one.config, *(change for change in other.config if change not in one.config)),
        lines=tuple(dict.fromkeys((*one.lines, *other.lines))),
    )


class DataRule(Rule):
    """Base class of rules about labels, which a subclass examines in :meth:`look`."""

    looks_at: ClassVar[Tuple[str, ...]] = ('labels',)
    #: Kinds of labels in which the mistake occurs.
    kinds: ClassVar[Tuple[str, ...]] = ('pixels',)
    #: True if invalid values show the mistake, rather than boxes, files or names.
    shows_values: ClassVar[bool] = True
    #: Facts that the rule needs, by their names in ``LabelFacts``: ``'values'``, ``'coco.unnamed'``, or one of several,
    #: ``'values or maps.raw'``. The rule is skipped if one of its needs is empty.
    needs: ClassVar[Tuple[str, ...]] = ('values',)

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        """Yield the findings that the labels support; ``labels`` is ``facts.labels``."""
        raise TypeError(f'{type(self).__name__} must define look()')

    def find(self, facts: Facts) -> Iterator[Finding]:
        labels = facts.labels
        assert labels is not None
        alternatives = (need.split(' or ') for need in self.needs)
        if labels.kind in self.kinds and all(any(get_fact(labels, name) for name in names) for names in alternatives):
            yield from self.look(facts, labels)

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterable[Edit]:
        """Return the edits to try, the most likely correction first."""
        return ()

    def edits(self, finding: Finding, facts: Facts) -> Iterable[Edit]:
        return finding.candidates if facts.labels is None else self.offer(facts, facts.labels)

    def report_in(
        self,
        facts: Facts,
        certainty: str,
        evidence: Optional[str] = None,
        words: Optional[Mapping[str, Any]] = None,
        title: str = '',
        severity: Optional[str] = None,
        values: Optional[Dict[int, int]] = None,
        files: Optional[Sequence[str]] = None,
        **more: Any,
    ) -> Finding:
        """Return a finding of this rule about labels.

        Args:
            facts (Facts): Facts about the labels, config and options.
            certainty (str): One of ``CERTAINTIES``.
            evidence (str, optional): Evidence of the finding; default: the invalid values.
            words (dict, optional): Further values for the placeholders, besides :func:`build_placeholders`.
            title, severity: As in :meth:`report`.
            values (dict[int, int], optional): Values that show the mistake -> count; default: the invalid values.
            files (list[str], optional): Files that show the mistake; default: the files with these values.
            more: Other arguments of :meth:`report`.
        """
        labels = facts.labels
        assert labels is not None
        if values is None:
            values = labels.values if self.shows_values else {}
        return self.report(
            labels.evidence if evidence is None else evidence,
            {**build_placeholders(labels), **(words or {})},
            title,
            severity,
            certainty=certainty,
            values=values,
            files=tuple(find_files_with(labels, values) if files is None else files)[:MAX_FILES_NAMED],
            **{'advice': self.advise(facts), **more},
        )

    def advise(self, facts: Facts) -> str:
        """Return the advice template: ``pytorch`` for a scan without a config (except for mmdet), else ``advice``."""
        framework = facts.options.get('framework') or ('pytorch' if facts.reread is not None else 'mmdet')
        return self.advice if facts.config is not None or framework == 'mmdet' else self.pytorch or self.advice


def get_fact(labels: LabelFacts, name: str) -> Any:
    """Return a fact by its name in ``needs``, or ``None`` if its group of facts is missing."""
    facts: Any = labels
    for field in name.split('.'):
        facts = None if facts is None else getattr(facts, field)
    return facts


def find_files_with(labels: LabelFacts, values: Mapping[int, int]) -> Sequence[str]:
    """Return example files that contain one of ``values``."""
    if labels.maps is None:
        # Examples of text files name the line.
        return labels.boxes.box_examples.get(LABEL_REASON, []) if values else []
    # Examples are keyed by stored values, which may differ from the loaded ones.
    as_stored = labels.stored if values is labels.values else {}
    examples = labels.maps.examples
    named = [path for v in values for stored in as_stored.get(v, [v]) for path in examples.get(stored, [])]
    return list(dict.fromkeys(named))


class AnnotationRule(DataRule):
    """Base class of rules about annotation files, except for rules about their label values."""

    kinds = ('instances',)
    needs: ClassVar[Tuple[str, ...]] = ('annotations',)
    shows_values = False


class EnvironmentRule(Rule):
    """Base class of rules about an installation. In their findings, ``places`` are names of Python modules."""

    about_labels = False
    looks_at = ('environment',)

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        """Yield findings about the installation."""
        raise TypeError(f'{type(self).__name__} must define look()')

    def find(self, facts: Facts) -> Iterator[Finding]:
        assert facts.environment is not None
        yield from self.look(facts.environment)


class RunRule(Rule):
    """Base class of rules about the records of a run and its ranks."""

    about_labels = False
    looks_at = ('run', 'ranks')


class AllClear(DataRule):
    """Base class of rules that report that labels are fine. They run only if no finding is about the labels."""

    severity = INFO
    about_labels = False


def build_placeholders(labels: LabelFacts) -> Dict[str, Any]:
    """Return the placeholder values available to every template."""
    return {
        'num_classes': labels.num_classes,
        'last': labels.last,
        'more': labels.num_classes + 1,
        'ignore_index': labels.ignore_index,
        # The ignored label; if nothing is ignored yet, the usual one, as a proposal.
        'void': labels.void,
        'values': ', '.join(map(str, sorted(labels.values)[:8])),
        'classes': len(labels.class_names),
        'beyond': max(labels.values, default=0) + 1,
        'extra': ', '.join(labels.class_names[labels.num_classes :][:8]),
    }
