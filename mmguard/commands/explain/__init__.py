"""Explanation of the errors in a log or a traceback, with advice."""
