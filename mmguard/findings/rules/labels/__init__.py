"""Rules about labels: of maps, annotation files and volumes."""
