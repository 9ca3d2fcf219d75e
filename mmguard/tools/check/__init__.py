"""The rules that read a config before training."""
