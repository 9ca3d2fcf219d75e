"""What is installed, whether it goes together, and what to do where it does not.

Imports what all commands share.
"""
