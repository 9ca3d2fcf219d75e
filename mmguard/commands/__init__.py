"""Commands of mmguard, each a module or package with ``add_to`` (adds its parser) and ``run`` (returns the exit code).

Commands may import everything except :mod:`mmguard.cli`; slow imports are in ``run`` to keep ``mmguard --help`` fast.
"""

#: Exit code of a command without findings, or of one that did everything; the help of each command gives details.
CLEAN = 0
#: Exit code of a command with findings, or of one that did not do everything.
FOUND = 1
#: Exit code of a command that could not run, also used by argparse.
COULD_NOT_RUN = 2
#: Exit code after Ctrl-C.
INTERRUPTED = 130
#: Exit code if the reader of the output (`| head`) has ended, the same as after SIGPIPE.
READER_GONE = 141
