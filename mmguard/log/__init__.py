"""Modules that sum the statistics of a run, write and read its files, and build the texts of its log.

Imports :mod:`mmguard.labels` and the packages below it, but not a framework.
"""
