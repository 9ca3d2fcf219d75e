"""The command `mmguard fix`; what it writes is made by :mod:`mmguard.scanning.copies`."""
