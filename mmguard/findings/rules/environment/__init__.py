"""Rules about the installation."""
