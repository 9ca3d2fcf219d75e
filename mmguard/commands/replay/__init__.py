"""Replay of the samples in a flight record, one at a time on the CPU, to find the one that raises."""

from mmguard.commands.replay.command import add_to as add_to
