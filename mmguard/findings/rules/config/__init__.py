"""Rules that read a config."""
