"""What label files hold, before the first step of training.

Imports :mod:`mmguard.tools.fix`, to try a correction before it is offered, the page of :mod:`mmguard.tools.report`, and
what all commands share.
"""
