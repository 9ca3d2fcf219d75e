"""Benchmarks of mmguard against peers, interleaved in one run, as ratios of medians: ``python -m benchmarks``."""
