"""Corrected copies of label files: never in place, each file whole or not at all, with a manifest of what changed."""
