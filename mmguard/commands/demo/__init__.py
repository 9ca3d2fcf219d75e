"""``mmguard demo``: a training that one bad label ends, and the same training guarded, which survives."""

from mmguard.commands.demo.command import add_to as add_to
