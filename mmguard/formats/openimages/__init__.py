"""OpenImages: a csv file of boxes."""
