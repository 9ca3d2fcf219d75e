"""Statistics of a run: accumulated, written as JSON lines and records, read back, and described.

Imports :mod:`mmguard.labels` and the packages below it; no framework.
"""
