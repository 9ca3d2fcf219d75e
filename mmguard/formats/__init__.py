"""Label formats, one folder each, with their detection, reading and correction; and shared code."""
