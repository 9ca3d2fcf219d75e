"""Folder for ``nnUNet_extTrainer``. It has only one module, because nnU-Net imports every module in it as top-level."""
