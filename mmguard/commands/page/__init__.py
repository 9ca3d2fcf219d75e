"""The self-contained HTML page of a scan."""
