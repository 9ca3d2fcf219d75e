"""Report of a run: what ``mmguard.read_log`` shows, how its ranks ended, and the likely causes."""
