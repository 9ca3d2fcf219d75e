"""The vocabulary: which labels are valid, and what was counted. Imports numpy alone."""

#: In a label map: every value that it does not name, the ignored one excepted.
OTHERS = '*'
