"""Definition of valid labels, and tallies of label elements.

Imports :mod:`mmguard.files`, :mod:`mmguard.text` and numpy; no torch, no framework.
"""

#: Key of a label map for every value that the map does not name, except the ignored one.
OTHERS = '*'
