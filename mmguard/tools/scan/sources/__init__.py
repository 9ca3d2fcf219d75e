"""Sources of label maps: a folder, or the data sets of a config."""
