"""Label maps: an image or array per sample, a class per pixel."""
