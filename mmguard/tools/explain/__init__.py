"""Explanation of the errors in a log, a notebook or a traceback, with advice."""
