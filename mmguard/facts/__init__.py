"""Facts about labels, a config, an installation or a run: readers collect them, rules judge them."""
