"""Locations of label files: a disk, a URL, or a config's file backend."""
