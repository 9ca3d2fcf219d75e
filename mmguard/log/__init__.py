"""Statistics of a run: their sums, the writer and the reader of their files, and the texts of the log.

Imports :mod:`mmguard.labels` and the packages below it; no framework.
"""
