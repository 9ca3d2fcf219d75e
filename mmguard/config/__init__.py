"""Configs, read without building anything of them; only ``load`` imports mmengine, when it is called."""
