"""Rules about configs."""
