"""The scan as JSON, and as a page."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict
from typing import Any, Dict, List, Sequence

from mmguard.findings.wording import unpack
from mmguard.tools.scan.nnunet.pictures import section_of_cases
from mmguard.tools.scan.run import SetResult


def as_json(target: str, results: Sequence[SetResult], failed: Sequence[str]) -> Dict[str, Any]:
    """The whole scan as one JSON object; what is empty is left out of the facts."""
    sets = [
        {
            'name': result.name,
            'clean': result.is_clean,
            'findings': [unpack(finding) for finding in result.findings],
            'facts': _plain(asdict(result.facts)),
            'worst': result.worst,
            'notes': result.notes,
            'decoded': result.decoded,
            'reused': result.reused,
        }
        for result in results
    ]
    return {'target': target, 'datasets': sets, 'failed': list(failed)}


def write_page(path: str, target: str, results: Sequence[SetResult]) -> None:
    """Writes the HTML page.

    Raises:
        OSError: It cannot be written.
    """
    from mmguard.tools.report.html import write_scan_page
    from mmguard.tools.report.page import Section, WorstFile

    with ExitStack() as stack:
        sections: List[Section] = []
        for result in results:
            if result.facts.volumes is not None:
                sections.append(section_of_cases(result, stack))
                continue
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
            sections.append(Section(result.name, result.facts, result.findings, worst, result.notes))
        write_scan_page(path, f'Labels of {target}', sections)


def _plain(value: Any) -> Any:
    """Dicts with text for keys, as JSON has them; a colour is ``'255,0,0'``."""
    if isinstance(value, dict):
        plain: Dict[str, Any] = {}
        for key, item in value.items():
            if item not in (None, '', 0, [], {}, ()):
                plain[','.join(map(str, key)) if isinstance(key, tuple) else str(key)] = _plain(item)
        return plain
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value
