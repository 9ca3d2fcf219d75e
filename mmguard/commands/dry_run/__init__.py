"""``mmguard dry-run``: properties of every valid training, tested on the program of a config."""

from mmguard.commands.dry_run.command import add_to as add_to
