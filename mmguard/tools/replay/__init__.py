"""Samples of a flight record, run again one at a time on the CPU, to find the one that fails."""
