"""What was seen of labels, a config, an installation or a run: readers write it, rules read it."""
