"""Scans of data sets: modules that plan a scan, run it in processes, diagnose it, and repeat it after an edit."""
