"""Corrected copies of label files: never in place, each file complete or missing, with a manifest of the changes."""
