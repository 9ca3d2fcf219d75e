"""Report of a run, on the screen and as an HTML page: tables, plots, likely causes, pictures of files."""
