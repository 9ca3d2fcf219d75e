"""Volumes: voxels, geometry and counts of one file, in NIfTI and flat images."""
