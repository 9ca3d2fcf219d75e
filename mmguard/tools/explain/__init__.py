"""Which errors a log, a notebook or a traceback holds, what they mean, and what to do.

Imports :mod:`mmguard.tools.scan` and what all commands share.
"""
