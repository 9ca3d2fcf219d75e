"""``mmguard demo``: watch one bad label end a training, and the same training survive it."""
