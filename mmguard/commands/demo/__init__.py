"""``mmguard demo``: a training that one bad label ends, and the same training guarded, which survives."""
