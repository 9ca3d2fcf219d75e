"""HTML page of a scan or a trace: a Jinja2 template that escapes every inserted text."""

from __future__ import annotations

import base64
import hashlib
import time
from functools import lru_cache
from pathlib import Path
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from mmguard.commands.page.pictures import Panel, WorstFile, build_panels, draw_boxes_panel
from mmguard.files.regular import read_regular
from mmguard.findings import LabelFacts
from mmguard.findings.finding import SEVERITIES
from mmguard.labels.instances import LABEL_REASON, describe_boxes
from mmguard.scanning.run import SetResult
from mmguard.text import hide_home, quantity, visible
from mmguard.version import __version__

#: Maximum number of files per section that are listed, and that are drawn.
LISTED, DRAWN = 100, 12
_TEMPLATES = Path(__file__).with_name('templates')


def build_page(title: str, results: Sequence[SetResult] = (), drawn: int = DRAWN, samples: Sequence[Any] = ()) -> str:
    """Return a self-contained HTML page, which loads nothing from the network. Its only script copies commands.

    Args:
        title (str): Title of the page, such as ``'Labels of data/masks'``.
        results (sequence of SetResult): Results of a scan; each data set is a section, in this order.
        drawn (int): Number of files with pictures per section.
        samples (sequence): (name, mistakes, pictures) of each sample of a trace.
    """
    content = dict(title=title, results=results, drawn=drawn, samples=samples)
    page = _load_template().render(**content, version=__version__, written=time.strftime('%Y-%m-%d %H:%M'))
    return hide_home(str(page))


@lru_cache(maxsize=None)
def _load_template() -> Any:
    environment = Environment(
        loader=FileSystemLoader(str(_TEMPLATES)),
        autoescape=True,
        finalize=_make_visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # The script is the same on every page, so that the page can permit exactly this script by its digest.
    script = read_regular(_TEMPLATES / 'page.js').decode()
    digest = base64.b64encode(hashlib.sha256(script.encode('utf-8')).digest()).decode()
    environment.filters['thousands'] = '{:,}'.format
    environment.globals.update(
        listed=LISTED,
        code_of=mark_code,
        counted=quantity,
        found_in=list_invalid,
        histogram_of=build_histogram,
        draw_panels=draw_panels,
        script=Markup(script),
        script_hash=f'sha256-{digest}',
        tiles_of=build_tiles,
        verdict_of=summarize_findings,
        worst_of=list_worst,
    )
    return environment.get_template('page.html')


def mark_code(text: str) -> Markup:
    """Return a text as escaped HTML, with the parts between backticks in ``<code>``."""
    parts = visible(text).split('`')
    if len(parts) % 2 == 0:  # one is not closed
        return escape(visible(text))
    return Markup('').join(
        Markup('<code>{}</code>').format(part) if number % 2 else part for number, part in enumerate(parts)
    )


def _make_visible(value: Any) -> Any:
    """Escape every invisible character of a value, before Jinja2 escapes it for HTML; return markup unchanged."""
    return value if isinstance(value, Markup) else visible(str(value))


def list_worst(result: SetResult) -> List[WorstFile]:
    """Return the files of a data set (label maps, images with boxes, volumes), from most to fewest invalid labels."""
    if result.facts.volumes is not None:
        faults = [fault for listed in result.facts.volumes.faults.values() for fault in listed]
        faults.sort(key=lambda fault: (-fault.voxels, fault.file))
        return [WorstFile(f'{fault.file}: {fault.detail}', skipped=fault.voxels) for fault in faults]
    worst = [
        WorstFile(
            source=file['file'],
            image_path=file['image'],
            label_path=file['path'],
            values={int(value): count for value, count in file['stored'].items()},
            skipped=file['invalid'],
            ignored=result.ignored,
        )
        for file in result.worst
    ]
    for one in sorted(result.facts.boxed, key=lambda one: -sum(count for _, count in one.faults)):
        reasons = dict(one.faults)
        worst.append(WorstFile(one.file, skipped=sum(reasons.values()), reasons=reasons, boxed=one))
    return worst


def summarize_findings(result: SetResult) -> Tuple[str, str, str]:
    """Return (CSS class, bold beginning, rest) of a sentence that summarizes the findings of a data set."""
    findings, facts = result.findings, result.facts
    others = [finding for finding in findings if not finding.is_verdict]
    is_invalid = any(facts.values.values()) or any(facts.reasons.values())
    if len(others) < len(findings):
        more = f'{quantity(len(others), "other finding")}.' if others else 'No invalid labels were found.'
        return 'fine', 'Your labels are fine.', f' {more}'
    if not (findings or is_invalid):  # not an all-clear: findings may be hidden, or in another data set
        return 'info', 'No invalid label was counted.', ''
    if not findings:
        return 'error', 'Something is invalid', ', but no finding explains why: see the values below.'
    begin = f' Begin with {findings[0].code}.' if len(findings) > 1 else ''
    tone = min((finding.severity for finding in findings), key=SEVERITIES.index)
    return tone, f'{quantity(len(findings), "finding")}.', begin


def build_tiles(labels: LabelFacts) -> List[Tuple[str, str, bool]]:
    """Return (number, unit, is_alarm) for each tile in the summary of a data set."""
    kind, ignored = labels.kind, '' if labels.ignore_index is None else f', {labels.ignore_index} ignored'
    invalid = sum(labels.values.values()) + sum(n for why, n in labels.reasons.items() if why != 'label')
    tiles = [
        (f'{labels.files:,}', 'files', False, labels.files),
        (f'{labels.offending_files:,}', 'files with faults', labels.offending_files > 0, labels.files),
        (_shorten_count(labels.total), kind, False, labels.total),
        (_shorten_count(invalid), f'invalid {kind}', invalid > 0, True),
        (f'{labels.num_classes:,}', f'classes: 0 to {labels.num_classes - 1}{ignored}', False, True),
    ]
    return [(number, what, alarm) for number, what, alarm, known in tiles if known or alarm]


def draw_panels(file: WorstFile) -> List[Panel]:
    """Return the pictures of a file: its image and its label map, or its image with boxes."""
    return build_panels(file) if file.boxed is None else [draw_boxes_panel(file.boxed)]


def list_invalid(file: WorstFile) -> List[str]:
    """Return a text per invalid value with its count, such as ``'11: 1,201'``, then texts about the faults of boxes."""
    values = [f'{value}: {count:,}' for value, count in sorted(file.values.items(), key=lambda item: -item[1])]
    more = [f'... {len(values) - 8} more'] if len(values) > 8 else []
    labels = 0 if values else file.reasons.get(LABEL_REASON, 0)
    return [*values[:8], *more, *([quantity(labels, 'invalid label')] if labels else []), *describe_boxes(file.reasons)]


def _shorten_count(count: int) -> str:
    """Return counts below 100 million as ``'1,234,567'``, larger counts as ``'8.39 billion'``."""
    units = ((10**12, 'trillion'), (10**9, 'billion'), (10**6, 'million'))
    large = (f'{count / size:.3g} {unit}' for size, unit in units if count >= max(size, 10**8))
    return next(large, f'{count:,}')


#: Maximum number of rows of a histogram: first the invalid values, then the most frequent ones.
ROWS = 48


class Row(NamedTuple):
    """Row of a histogram: a label value with its count, and a bar of length ``height`` in [0, 1]."""

    kind: str
    value: int
    status: str
    name: str
    times: int
    share: str
    height: float


class Histogram(NamedTuple):
    """Histogram of the labels of a data set."""

    title: str
    legend: List[Tuple[str, str]]
    rows: List[Row]
    left: int  #: Number of values without a row.
    named: bool  #: True if a value has a name.


def build_histogram(labels: LabelFacts) -> Optional[Histogram]:
    """Return the histogram of all values, or of invalid values if only these are known; ``None`` without values."""
    counts = labels.histogram or labels.values
    if not counts:
        return None
    if labels.histogram and len(counts) <= ROWS and labels.num_classes <= ROWS:
        # A class that never occurs gets a row, since it cannot be learned.
        counts = {**dict.fromkeys(range(labels.num_classes), 0), **counts}
    names = {
        'valid': f'valid (0 to {labels.num_classes - 1})',
        'ignored': f'ignored ({labels.ignore_index})',
        'invalid': 'invalid',
    }
    kinds = {value: _classify_value(value, labels) for value in counts}
    shown = sorted(counts, key=lambda value: (kinds[value] != 'invalid', -counts[value]))[:ROWS]
    whole, most = sum(counts.values()), max(counts.values())
    rows = []
    for value in sorted(shown):
        count, kind = counts[value], kinds[value]
        status = 'never seen' if not count else 'class' if kind == 'valid' else kind
        share = format_share(count, whole)
        rows.append(Row(kind, value, status, labels.name_of(value), count, share, count / max(most, 1)))
    legend = [(kind, name) for kind, name in names.items() if kind in kinds.values()]
    title = f'{labels.kind.capitalize()} per {"" if labels.histogram else "invalid "}value'
    return Histogram(title, legend, rows, len(counts) - len(rows), any(row.name for row in rows))


def _classify_value(value: int, labels: LabelFacts) -> str:
    if value == labels.ignore_index:
        return 'ignored'
    return 'valid' if 0 <= value < labels.num_classes else 'invalid'


def format_share(part: int, total: int) -> str:
    """Return the share of ``part`` in ``total`` as ``'12.30 %'``; a part above 0 is never shown as 0 %."""
    percent = 100 * part / total if total else 0.0
    if percent == 0 or percent >= 0.01:
        return f'{percent:.2f} %' if percent < 99.995 or percent == 100 else '> 99.99 %'
    return '< 0.01 %'
