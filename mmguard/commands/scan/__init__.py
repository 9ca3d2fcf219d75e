"""Scan of label files before training."""

from mmguard.commands.scan.command import add_to as add_to
