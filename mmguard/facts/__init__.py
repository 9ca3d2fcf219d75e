"""Facts about labels, a config, an installation or a run: readers write them, rules read them."""
