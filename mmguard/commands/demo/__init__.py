"""Command ``mmguard demo``, which shows a training that an invalid label crashes, and the same training with guards."""

from mmguard.commands.demo.command import add_to as add_to
