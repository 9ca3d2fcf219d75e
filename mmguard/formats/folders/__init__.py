"""Classes of images: a folder per class, or a list of images with their labels."""
