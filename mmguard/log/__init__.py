"""Counts of a run: added up, written as JSON lines and records, read back, and put into words.

Imports :mod:`mmguard.labels` and what is below it; no framework.
"""
