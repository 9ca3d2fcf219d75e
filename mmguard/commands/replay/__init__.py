"""Replay of the samples in a flight record, one at a time on the CPU, to find the one that raises."""
