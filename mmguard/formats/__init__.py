"""Formats of labels, a folder each: how its files are recognised, read and corrected; and what several share."""
