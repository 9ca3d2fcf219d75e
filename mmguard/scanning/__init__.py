"""Scans: the plan of a target, its run on several processes, its diagnosis, and copies with an edit."""
