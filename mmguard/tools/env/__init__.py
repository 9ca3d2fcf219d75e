"""Installed packages: which do not go together, and what to do."""
