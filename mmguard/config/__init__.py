"""What a config says, read without building anything of it. Imports ``words`` and ``stack``; frameworks only to
look up classes that a config names."""
