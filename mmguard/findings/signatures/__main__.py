"""Write docs/errors.md: ``python -m mmguard.findings.signatures > docs/errors.md``."""

from __future__ import annotations

from mmguard.findings.signatures.page import page

if __name__ == '__main__':
    print(page(), end='')
