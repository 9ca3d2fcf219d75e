"""Writes the guarded config: what a user would otherwise change by hand in four places of it."""
