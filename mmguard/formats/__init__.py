"""Label formats, each with code that detects, reads and corrects its label files, and the code that they share."""
