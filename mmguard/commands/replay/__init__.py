"""Replay of the samples in a flight record, one at a time on the CPU, to find the sample that raises an exception."""

from mmguard.commands.replay.command import add_to as add_to
