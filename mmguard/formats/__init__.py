"""Label formats: code that detects, reads and corrects the label files of each format, and code for all formats."""
