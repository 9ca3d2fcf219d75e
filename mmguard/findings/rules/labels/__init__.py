"""Rules about labels in maps, annotation files and volumes."""
