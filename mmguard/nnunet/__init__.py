"""nnU-Net (v2): a trainer that no label can break. Needs nnunetv2; ``mmguard nnunet`` tells nnU-Net where it is."""
