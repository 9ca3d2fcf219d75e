"""The folder for ``nnUNet_extTrainer``. nnU-Net imports every module in it by its bare name, so it has only one."""
