"""Files that are written whole, JSON of stated types, and pickles that call nothing.

Imports nothing of mmguard but :mod:`mmguard.errors`; no torch.
"""
