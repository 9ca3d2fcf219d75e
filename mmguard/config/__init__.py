"""Reading, checking and guarding of configs; mmengine is imported only by the functions that need it."""
