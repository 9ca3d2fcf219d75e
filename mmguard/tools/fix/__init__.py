"""Corrected copies of label files: never in place, each file whole or not at all, with a manifest of what changed.

Imports :mod:`mmguard.tools.scan`, which says what to correct, and what all commands share.
"""
