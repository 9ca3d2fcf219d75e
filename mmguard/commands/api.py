"""Commands as functions for notebooks and programs: ``mmguard.scan``, ``check``, ``dry_run`` and ``explain``."""

from __future__ import annotations

import os
import time
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from html import escape
from typing import Any, Callable, List, Mapping, Optional, Sequence, Tuple

from mmguard.commands.packages import name_missing_package
from mmguard.errors import collect_failures
from mmguard.findings.finding import ERROR, INFO, PROVEN, Finding
from mmguard.text import visible


@dataclass(frozen=True)
class Diagnosis:
    """Result of a command; ``bool()`` is True if ``failed`` is empty and all findings are remarks (``'info'``).

    Attributes:
        target (str): Config, data set or log that the command read.
        findings (tuple[Finding]): Findings, the most likely first. Each has ``code``, ``title``, ``severity``,
            ``evidence``, ``files`` and ``edits``.
        files (dict[str, int]): {file with invalid labels: number of invalid labels}, at most 100,000 files per data
            set. The path of a file inside the working directory is relative to this directory.
        failed (tuple[str]): Inputs that could not be read, with the reasons.
        record (dict): The result as plain data, as ``--json`` writes it.
        text (str): What the command prints.
    """

    target: str
    findings: Tuple[Finding, ...] = ()
    files: Mapping[str, int] = field(default_factory=dict)
    failed: Tuple[str, ...] = ()
    record: Mapping[str, Any] = field(default_factory=dict, repr=False)
    text: str = field(default='', repr=False)
    draw: Optional[Callable[[int], str]] = field(default=None, repr=False)  # number of pictures -> HTML

    def __bool__(self) -> bool:
        return not self.failed and all(finding.severity == INFO for finding in self.findings)

    def __str__(self) -> str:
        return self.text

    @name_missing_package
    def to_frame(self) -> Any:
        """Return the findings as a ``pandas.DataFrame`` with one row per finding.

        Raises:
            ImportError: pandas is not installed.
        """
        import pandas

        columns = ('code', 'severity', 'title', 'evidence', 'files', 'places', 'advice')
        rows = [[getattr(finding, name) for name in columns[:-1]] + [finding.next_step] for finding in self.findings]
        return pandas.DataFrame(rows, columns=list(columns))

    def class_weight(self, formula: str = 'enet', dataset: Optional[str] = None) -> List[float]:
        """Return class weights for a loss, computed from all pixels that are neither ignored nor invalid.

        Args:
            formula (str): ``'enet'``, 1 / ln(1.02 + share of pixels), or ``'median_frequency'``. Absent classes get 1.
            dataset (str, optional): Name of the data set; required if several data sets have class weights.

        Raises:
            ValueError: ``formula`` is unknown, or the number of matching data sets with class weights is not 1. A data
                set has class weights if it has label maps for training and ``num_classes`` is known.
        """
        known = {one['name']: one['class_weight'] for one in self.record.get('datasets', ()) if one['class_weight']}
        chosen = [weights for name, weights in known.items() if dataset in (None, name)]
        if len(chosen) != 1:
            names = ', '.join(map(repr, known)) or 'none'
            raise ValueError(f'expected one data set with class weights, got {len(chosen)}; weights exist for {names}')
        if formula not in chosen[0]:
            raise ValueError(f'formula must be one of {", ".join(map(repr, chosen[0]))}, got {formula!r}')
        return list(chosen[0][formula])

    @name_missing_package
    def show(self, number: int = 3) -> Page:
        """Return an HTML page for notebooks, with the findings and with pictures of the worst files.

        Args:
            number (int): Number of files to draw per data set.
        """
        return Page(f'<pre>{escape(visible(self.text))}</pre>' if self.draw is None else self.draw(number))

    def _repr_html_(self) -> str:
        return self.show(0)._repr_html_()


class Page(str):
    """HTML document that notebooks display in a frame."""

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self)}" width="100%" height="480" style="border:0"></iframe>'


@name_missing_package
def scan(
    target: str,
    *,
    processes: Optional[int] = None,
    executor: Optional[Executor] = None,
    verify: bool = True,
    **options: Any,
) -> Diagnosis:
    """Check all labels of a data set, as ``mmguard scan`` does.

    Args:
        target (str): Config, folder of label maps, annotation file, or any other TARGET of ``mmguard scan``.
        processes (int, optional): Number of processes. Default: one per core.
        executor (concurrent.futures.Executor, optional): Executor that reads the files in place of local processes,
            such as ``ProcessPoolExecutor``, ``MPIPoolExecutor`` or ``dask.distributed.Client(...).get_executor()``. Its
            workers must find the files at the same paths. The executor is not shut down.
        verify (bool): Build and call the parts of a config that an edit changes, before the edit is offered.
        options: Options of ``mmguard scan``: ``num_classes``, ``ignore_index``, ``reduce_zero_label``, ``label_map``,
            ``images``, ``suffix``, ``splits``, ``labels``, ``framework``, ``masks``, ``classes``, ``run_code``.

    Raises:
        TypeError: ``options`` has an unknown name.
        ValueError: ``processes`` and ``executor`` are both given.
        mmguard.errors.CannotRun: ``target`` has nothing to scan.

    Example:
        >>> mmguard.scan('data/masks', num_classes=19).to_frame()  # doctest: +SKIP
    """
    from mmguard.commands.scan.output import as_json, as_page, as_text, name_from_here
    from mmguard.formats.options import ScanOptions, as_pairs
    from mmguard.scanning.executors import AnyExecutor, scan_in_processes
    from mmguard.scanning.plans import plan_target
    from mmguard.scanning.run import run_plan, verify_results

    if executor is not None and processes is not None:
        raise ValueError('pass processes or executor, not both: an executor has its own number of workers')
    if 'label_map' in options:
        options['label_map'] = as_pairs(options['label_map'])
    for name in ('splits', 'classes'):
        if options.get(name) is not None:
            options[name] = tuple(options[name])
    target = os.fspath(target)
    plan = plan_target(target, ScanOptions(**options))
    local = partial(scan_in_processes, processes=processes)
    with collect_failures() as failures:
        results = run_plan(plan, local if executor is None else AnyExecutor(executor))
    plan.failed += failures.values()
    verify_results(results, plan, verify)
    name_from_here(results)
    return Diagnosis(
        target,
        findings=tuple(finding for result in results for finding in result.findings),
        files={file: count for result in results for file, count in result.facts.offending.items()},
        failed=tuple(plan.failed),
        record=as_json(target, results, plan.failed),
        text=as_text(results, plan.failed),
        draw=lambda number: as_page(target, results, number),
    )


@name_missing_package
def check(config: str, *, run_code: bool = False, verify: bool = True) -> Diagnosis:
    """Check a config before training, as ``mmguard check`` does.

    Args:
        config (str): A file, or a shipped config: ``mmseg::pidnet/NAME.py``. A config in Python is executed.
        run_code (bool): Import and run the code that a config in YAML or JSON names. Only for configs that you trust.
        verify (bool): Build and call the parts of the config that an edit changes, before the edit is offered.

    Raises:
        mmguard.errors.CannotRun: The file is not a config, or cannot be read.
    """
    from mmguard.commands.check import as_json, as_text, check_config, select_config_rules
    from mmguard.commands.selection import RuleSelection

    rules = select_config_rules(RuleSelection())
    with collect_failures() as failures:
        read, findings = check_config(os.fspath(config), rules, run_code, verify)
    failed = tuple(failures.values())
    record = as_json(read, findings, [rule.code for rule in rules], failed)
    return Diagnosis(read.file, tuple(findings), failed=failed, record=record, text=as_text(read, findings, len(rules)))


@name_missing_package
def dry_run(
    config: str,
    *,
    only: Sequence[str] = (),
    samples: int = 8,
    seconds: float = 120,
    device: str = 'cpu',
    run_code: bool = False,
) -> Diagnosis:
    """Run the first training batches of a config, then test properties of its training, as ``mmguard dry-run`` does.

    Each broken property becomes a finding of severity ``'error'``, and each note one of severity ``'info'``; its code
    is the name of the property. ``record`` also has properties that could not run, with the outcome ``'not run'``.

    Args:
        config (str): A file, or a shipped config: ``mmseg::pidnet/NAME.py``. A config in Python is executed.
        only (list[str]): Names of the properties to test. Default: all.
        samples (int): Number of samples per data set. If 0, no data are read, and only made-up images are tested.
        seconds (float): Time limit for all properties together.
        device (str): Device of the model.
        run_code (bool): Import and run the code that a config in YAML or JSON names. Only for configs that you trust.

    Raises:
        mmguard.errors.CannotRun: The file is not a config, or has no model.
    """
    from mmguard.commands.dry_run.command import check_program
    from mmguard.commands.dry_run.render import as_json, as_text, build_findings, list_reasons

    config, began = os.fspath(config), time.monotonic()
    tested = list(check_program(config, only, samples, seconds, device, run_code))
    taken = time.monotonic() - began
    record, text = as_json(config, tested, taken), as_text(tested, taken)
    return Diagnosis(config, tuple(build_findings(tested)), {}, tuple(list_reasons(tested)), record, text)


@name_missing_package
def explain(log: str, *, config: Optional[str] = None, data: Optional[str] = None, **options: Any) -> Diagnosis:
    """Explain what ended a training, as ``mmguard explain`` does.

    Args:
        log (str): Path of a log or of the folder of a run, or the text of a log that has several lines.
        config (str, optional): Check this config and its labels, too.
        data (str, optional): Scan these labels, too.
        options: Options of ``mmguard explain``: ``num_classes``, ``ignore_index``, ``framework``, ``run_code``.

    Returns:
        Diagnosis: The first finding is the error in the log, with its code. Findings in config and labels follow. If
        the log has no error, there are only findings in config and labels.

    Raises:
        mmguard.errors.CannotRun: ``log`` does not exist.
    """
    from mmguard.commands.explain.command import describe, explain_pieces, open_log_or_text
    from mmguard.commands.explain.render import advise, as_json
    from mmguard.formats.options import ScanOptions

    pieces, name = open_log_or_text(os.fspath(log))
    scanned = ScanOptions(**options)
    read, found, findings, failed = explain_pieces(pieces, name, config, data, scanned)
    record = as_json(found, name, findings)
    text = describe(read, found, findings, name, config, data, scanned)
    if found is not None:
        error = Finding(
            code=found.signature.code if found.signature else '',
            title=found.signature.title if found.signature else found.raised.text,
            evidence=found.raised.text,
            advice=advise(found),
            certainty=PROVEN,
            severity=INFO if found.is_open else ERROR,
        )
        causes = (finding for ranked in found.causes for finding in ranked.findings)
        findings = (error, *dict.fromkeys([*causes, *found.more]))
    return Diagnosis(name, findings, failed=tuple(failed), record=record, text=text)
