"""``python -m mmguard.findings.signatures > docs/errors.md`` writes the page of errors anew."""

from __future__ import annotations

from mmguard.findings.signatures.page import page

if __name__ == '__main__':
    print(page(), end='')
