"""The lines of ``label_guard.jsonl``, as a test wants to compare them."""

from __future__ import annotations

from typing import Any, Dict, List


def with_values(lines: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Lines with the values of each sample: a file that offends as it did the time before is logged without."""
    before: Dict[Any, Dict[str, Any]] = {}
    for line in lines:
        for sample in (*line.get('samples', ()), *line.get('loss_samples', ())):
            place = line['mode'], sample.get('kind'), sample['source']
            if 'values' not in sample:
                sample.update({key: value for key, value in before[place].items() if key not in sample})
                count = sample['skipped'] + sample['remapped']
                if len(sample['values']) == 1:
                    sample['values'] = dict.fromkeys(sample['values'], count)
                    sample.update({'reasons': {'label': count}} if 'reasons' in sample else {})
            before[place] = sample
    return lines
