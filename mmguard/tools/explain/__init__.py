"""``mmguard explain``."""
