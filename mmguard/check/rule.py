"""What a rule is."""

from __future__ import annotations

from typing import Any, ClassVar, Iterator, Optional

from mmguard.check.config import ReadConfig
from mmguard.check.finding import ERROR, ConfigFinding


class Rule:
    """One kind of mistake in a config: a subclass in a file of its own.

    A rule speaks where it is sure. What only invalid labels would bring out is ``on_request``: official configs, as
    they were written, must pass without a false alarm.
    """

    #: Stable code; it is never given to another rule.
    code: ClassVar[str]
    #: What is wrong, one line.
    summary: ClassVar[str]
    #: What happens to those who leave it.
    why: ClassVar[str]
    #: What to write instead.
    advice: ClassVar[str]
    severity: ClassVar[str] = ERROR
    #: Whether it is looked for only with ``--all`` or ``--select``.
    on_request: ClassVar[bool] = False

    def find(self, config: ReadConfig) -> Iterator[ConfigFinding]:
        """The places where the config makes this mistake."""
        raise TypeError(f'{type(self).__name__} does not look at the config')

    def at(
        self, path: str, value: Any, message: str, advice: Optional[str] = None, severity: Optional[str] = None
    ) -> ConfigFinding:
        """A finding of this rule."""
        return ConfigFinding(self.code, severity or self.severity, path, value, message, advice or self.advice)
