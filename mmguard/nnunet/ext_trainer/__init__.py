"""Folder for ``nnUNet_extTrainer``. It has only one module: nnU-Net imports each module in it as a top-level one."""
