"""Guarded configs, which users would otherwise edit by hand in four places."""

from mmguard.commands.apply.command import add_to as add_to
