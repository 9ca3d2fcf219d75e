"""Places of label files: on a disk, at a URL, or where a config's file backend finds them."""
