"""``mmguard dry-run``: properties of every valid training, tested on the program of a config."""
