"""Where label files lie: on a disk, behind a URL, or where a config's file backend finds them."""
