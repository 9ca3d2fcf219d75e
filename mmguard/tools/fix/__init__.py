"""The command `mmguard fix`; what it writes is made by :mod:`mmguard.tools.fix.copies`."""
