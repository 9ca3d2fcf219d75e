"""The commands, one module each: ``add_to`` adds its parser, ``run`` runs it and returns the exit code.

The modules import nothing heavy before ``run``, so that ``mmguard --help`` is there at once.
"""
