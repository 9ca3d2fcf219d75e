"""Raw data sets of nnU-Net: ``dataset.json``, ``imagesTr``, ``labelsTr``; volumes in NIfTI and other formats."""
