"""Installed packages, their conflicts, and corrections."""
