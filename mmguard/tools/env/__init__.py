"""What is installed, whether it goes together, and what to do where it does not."""
