"""Which step of a pipeline makes, changes or drops a label value or a box."""
