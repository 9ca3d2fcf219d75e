"""Scan of label files before training."""
