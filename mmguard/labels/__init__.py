"""Definition of valid labels, and tallies of label elements.

Imports :mod:`mmguard.files`, :mod:`mmguard.text` and numpy; no torch, no framework.
"""

#: Default ignore_index of label maps in mmseg and mmdet.
VOID = 255
#: Key of a label map for every value that the map does not name, except the ignored one.
OTHERS = '*'
