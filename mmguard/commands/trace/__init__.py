"""Trace of the label values and boxes that each step of a pipeline creates, changes or drops."""
