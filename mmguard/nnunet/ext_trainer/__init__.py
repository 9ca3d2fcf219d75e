"""Folder for ``nnUNet_extTrainer``; it holds one module, since nnU-Net imports every module by its bare name."""
