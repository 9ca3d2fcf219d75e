"""What a person reads: numbers, lists, exceptions and foreign text in words, on any console.

Imports nothing else of mmguard.
"""
