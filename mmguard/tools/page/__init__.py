"""The self-contained HTML page of a scan or of a run."""
