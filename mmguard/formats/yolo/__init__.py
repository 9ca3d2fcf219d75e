"""YOLO labels: a label file per image, with a row per object and coordinates as fractions of the image."""
