"""Guarded configs: what a user would otherwise change by hand in four places."""
