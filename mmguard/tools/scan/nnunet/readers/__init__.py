"""Readers of volumes: what nnU-Net would see of a file, in one pass, in bounded memory where the form allows."""
