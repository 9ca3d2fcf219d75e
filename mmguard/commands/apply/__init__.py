"""Command ``mmguard apply``, which writes a config with guards or with edits, and never changes the original."""

from mmguard.commands.apply.command import add_to as add_to
