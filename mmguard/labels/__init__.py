"""The vocabulary: which labels are valid, and what was counted.

Imports :mod:`mmguard.files`, :mod:`mmguard.text` and numpy; no torch, no framework.
"""

#: In a label map: every value that it does not name, the ignored one excepted.
OTHERS = '*'
