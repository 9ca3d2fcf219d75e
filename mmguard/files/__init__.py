"""Safe access to files: check paths, open images, write atomically, and parse YAML and JSON without running code."""
