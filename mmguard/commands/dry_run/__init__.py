"""``mmguard dry-run``: the training of a config is built, run for a few batches, and tested."""

from mmguard.commands.dry_run.command import add_to as add_to
