"""Texts for people: numbers, lists, exceptions and foreign text in words, on any console."""
