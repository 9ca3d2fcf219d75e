"""The commands, one package each: ``add_to`` adds its parser, ``run`` runs it and returns the exit code.

May import everything except :mod:`mmguard.cli`; nothing heavy before ``run``, so that ``mmguard --help`` is fast.
"""
