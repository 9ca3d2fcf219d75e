"""nnU-Net's raw data sets: ``dataset.json``, ``imagesTr``, ``labelsTr``; volumes of NIfTI and other forms."""
