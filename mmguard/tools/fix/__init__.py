"""The command `mmguard fix`; see :mod:`mmguard.tools.fix.copies` for its output."""
