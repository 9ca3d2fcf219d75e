"""Labels of YOLO: a text per image, a row per object, coordinates as fractions of the image."""
