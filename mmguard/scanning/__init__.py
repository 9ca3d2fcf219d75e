"""Scans: planning, running on several processes, diagnosis, and copies with an edit."""
