"""Files that are written whole, JSON of stated types, and pickles that call nothing."""
