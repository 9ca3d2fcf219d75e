"""Explanation of the errors in a log or a traceback, with advice."""

from mmguard.commands.explain.command import add_to as add_to
