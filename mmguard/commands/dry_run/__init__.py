"""Command ``mmguard dry-run``, which builds the training of a config, runs a few batches, and tests it."""

from mmguard.commands.dry_run.command import add_to as add_to
