"""Atomic writes, JSON of declared types, and plain-data parsing that executes nothing."""
