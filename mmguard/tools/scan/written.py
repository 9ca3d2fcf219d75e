"""The scan as JSON, and as a page."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Dict, List, Sequence, Tuple

from mmguard.findings.volumes import CaseFault
from mmguard.findings.wording import unpack
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

    sections: List[Section] = []
    for result in results:
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
        if result.facts.volumes is not None:
            faults = sorted((f for listed in result.facts.volumes.faults.values() for f in listed), key=_by_voxels)
            worst = [WorstFile(f'{fault.file}: {fault.detail}', skipped=fault.voxels) for fault in faults]
        sections.append(Section(result.name, result.facts, result.findings, worst, result.notes))
    write_scan_page(path, f'Labels of {target}', sections)


def _by_voxels(fault: CaseFault) -> Tuple[int, str]:
    return -fault.voxels, fault.file


def _plain(value: Any) -> Any:
    """Dicts with text for keys, as JSON has them; a colour is ``'255,0,0'``."""
    if isinstance(value, dict):
        plain: Dict[str, Any] = {}
        for key, item in value.items():
            if item not in (None, '', 0, [], {}, ()):
                plain[','.join(map(str, key)) if isinstance(key, tuple) else str(key)] = _plain(item)
        return plain
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value
