"""The commands, a module or package each, with ``add_to`` (adds the parser) and ``run`` (returns the exit code).

They may import everything except :mod:`mmguard.cli`; nothing heavy before ``run``, so that ``mmguard --help`` is fast.
"""

#: Exit codes of all commands; the help of each gives details. No findings, or everything was done.
CLEAN = 0
#: Findings, or not everything was done.
FOUND = 1
#: The command could not run; argparse also uses it.
COULD_NOT_RUN = 2
#: Ctrl-C.
INTERRUPTED = 130
#: The reader of the output (`| head`) has ended; the code of a program that SIGPIPE ends.
READER_GONE = 141
