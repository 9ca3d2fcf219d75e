"""Scan of label files, before the first step of training."""
