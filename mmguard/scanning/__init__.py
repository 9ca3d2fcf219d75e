"""Scans of data sets: plans, worker processes, diagnosis, and scans with an edit applied."""
