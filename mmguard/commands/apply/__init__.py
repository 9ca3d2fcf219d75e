"""Guarded configs, which users would otherwise edit by hand in four places."""
