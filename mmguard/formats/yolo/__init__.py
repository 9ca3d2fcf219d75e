"""YOLO labels: a label file per image, a row per object, coordinates as fractions of the image."""
