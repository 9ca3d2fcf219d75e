"""What was found, for a screen and as a page: tables, plots, likely causes, pictures of files.

Imports :mod:`mmguard.tools.explain` and what all commands share.
"""
