"""``mmguard dry-run``: what must hold of every training, tested on the program of a config."""

from __future__ import annotations
