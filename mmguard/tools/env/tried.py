"""The versions that mmguard itself was run with: ``make matrix`` writes them, ``mmguard env`` compares."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List

#: Rows of versions (``torch``, ``numpy``, ``python``) and what the tests gave beside them.
TRIED = Path(__file__).with_name('tried.json')


def tried() -> List[Dict[str, Any]]:
    """The rows of ``make matrix``, in which every test passed or was skipped."""
    return [row for row in json.loads(TRIED.read_text(encoding='utf-8')) if not row['failed']]
