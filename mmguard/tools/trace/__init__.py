"""Where in a pipeline a label value or a box appears, changes or vanishes.

Imports what all commands share.
"""
