"""The situations and reports of tests/findings serve the tests here, too."""

import sys
from pathlib import Path

FINDINGS = Path(__file__).parents[2] / 'findings'
sys.path[:0] = [str(FINDINGS / name) for name in ('situations', 'reports')]
