"""Findings of a run, on the screen and as a page: tables, plots, likely causes, pictures of files."""
