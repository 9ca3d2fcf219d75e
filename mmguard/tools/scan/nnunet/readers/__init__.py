"""Readers of volumes that see a file as nnU-Net does, in one pass, and in bounded memory if the format allows it."""
