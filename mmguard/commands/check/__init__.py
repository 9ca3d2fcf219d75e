"""``mmguard check``: the rules that read a config before training."""
