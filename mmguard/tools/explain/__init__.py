"""Errors in a log, a notebook or a traceback: what they mean, and what to do."""
