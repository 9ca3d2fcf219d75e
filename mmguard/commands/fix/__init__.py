"""The command `mmguard fix`; see :mod:`mmguard.commands.fix.copies` for its output."""

from mmguard.commands.fix.command import add_to as add_to
