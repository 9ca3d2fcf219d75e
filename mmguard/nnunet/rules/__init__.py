"""Rules about raw data sets of nnU-Net."""
