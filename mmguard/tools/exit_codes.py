"""Exit codes of all commands; the help of each command gives details."""

#: Nothing was found, or all was done.
CLEAN = 0
#: Something was found, or not all was done.
FOUND = 1
#: The command could not run; argparse, too, ends with it.
COULD_NOT_RUN = 2
#: Ctrl-C.
INTERRUPTED = 130
#: As a program that SIGPIPE ends: who read the output (`| head`) has gone.
READER_GONE = 141
