"""Trace of the label values and boxes that each transform of a pipeline creates, changes or drops."""

from mmguard.commands.trace.command import add_to as add_to
