"""Writes the guarded config: what a user would otherwise change by hand in four places of it.

Imports :mod:`mmguard.tools.scan` and what all commands share.
"""
