"""What is to be scanned, for each format of a target."""
