"""The command `mmguard fix`; see :mod:`mmguard.commands.fix.copies` for its output."""
