"""Mutation testing: mutmut writes the mutants, a share of them is drawn, and each runs the tests that reach it.

Imports nothing of mmguard. ``make mutants`` runs it; README.md in this folder has the results.
"""
