"""Rules about what is installed."""
