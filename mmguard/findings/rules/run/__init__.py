"""Rules about a run and its ranks."""
