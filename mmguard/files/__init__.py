"""Files: checked paths, images, atomic writes, and parsing of YAML and JSON that executes no code."""
