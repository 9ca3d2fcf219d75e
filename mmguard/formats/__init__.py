"""Label formats, one folder each (detection, reading and correction of label files), and the code that they share."""
