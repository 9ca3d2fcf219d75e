"""What a run leaves behind: counts added up, written as JSON lines and records, and put into words.

Imports :mod:`mmguard.labels` and what is below it; no framework.
"""
