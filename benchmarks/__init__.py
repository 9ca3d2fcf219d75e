"""Ratios against peers: both sides in one run, interleaved, medians. Run with ``python -m benchmarks``."""
