"""Definition of valid labels, and tallies, which count the pixels or instances seen, skipped and remapped.

Imports :mod:`mmguard.files`, :mod:`mmguard.text` and numpy, but neither torch nor a framework.
"""

#: Default ignore_index of label maps in mmseg and mmdet.
VOID = 255
#: Key of a label map for every value that the map does not name, except the ignored one.
OTHERS = '*'
