"""``mmguard demo``: a training that crashes at an invalid label, and the same training with guards, which does not."""

from mmguard.commands.demo.command import add_to as add_to
