"""Statistics of a run: accumulated, written as JSON lines and records, read back, and described.

Imports :mod:`mmguard.labels` and what is below it; no framework.
"""
