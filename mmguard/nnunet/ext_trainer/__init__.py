"""The folder for ``nnUNet_extTrainer``. nnU-Net imports every module in it by its bare name, so there is but one."""
