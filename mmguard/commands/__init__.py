"""The commands, a module or package each: ``add_to`` adds its parser, ``run`` runs it and returns the exit code.

May import everything except :mod:`mmguard.cli`; nothing heavy before ``run``, so that ``mmguard --help`` is fast.
"""

#: Exit codes of all commands; the help of each gives details. No findings, or everything was done.
CLEAN = 0
#: Findings, or not everything was done.
FOUND = 1
#: The command could not run; argparse also uses it.
COULD_NOT_RUN = 2
#: Ctrl-C.
INTERRUPTED = 130
#: As for a program ended by SIGPIPE: the reader of the output (`| head`) is gone.
READER_GONE = 141
