"""Command ``mmguard fix``, which writes corrected copies of label files (:mod:`mmguard.commands.fix.copies`)."""

from mmguard.commands.fix.command import add_to as add_to
