"""Error signatures: JSON files, one per place where errors arise, and their reader.

Imports what findings may; no rules.
"""

from __future__ import annotations

from mmguard.findings.signatures.signature import Cause, Signature, choose, read_groups, read_signatures

__all__ = ['Cause', 'Signature', 'choose', 'read_groups', 'read_signatures']
