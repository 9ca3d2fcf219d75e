"""Error signatures: JSON files, one per area in which errors arise, and their reader.

May import the same modules as findings, except rules.
"""

from __future__ import annotations

from mmguard.findings.signatures.signature import Cause, Signature, choose, read_groups, read_signatures

__all__ = ['Cause', 'Signature', 'choose', 'read_groups', 'read_signatures']
