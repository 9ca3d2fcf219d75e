"""Labelme: a JSON file of shapes per image."""
