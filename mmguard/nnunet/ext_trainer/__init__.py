"""Folder for ``nnUNet_extTrainer``, from which nnU-Net imports every module by its bare name, so it holds only one."""
