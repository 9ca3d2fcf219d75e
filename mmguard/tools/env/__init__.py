"""Installed packages: whether they go together, and what to do where they do not."""
