"""Findings of a run, for a screen and as a page: tables, plots, likely causes, pictures of files."""
