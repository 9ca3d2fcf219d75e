"""Rules about data sets of volumes (nnU-Net)."""
