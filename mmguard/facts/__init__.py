"""Facts of labels, a config, an installation or a run, as they were read: readers write them, rules read them."""
