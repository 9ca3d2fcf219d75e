"""Where label maps come from: a folder, or the data sets of a config.

Imports what a scan may.
"""
