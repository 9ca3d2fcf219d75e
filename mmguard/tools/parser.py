"""The parser of every command: an option means what it says in full, or nothing."""

from __future__ import annotations

import argparse
import difflib
from typing import Any, Iterable, List, NoReturn, Optional, Sequence, Tuple

from mmguard.text.visible import visible


class Parser(argparse.ArgumentParser):
    """Takes no abbreviations, and names what stands nearest to an option that it does not know.

    ``fix --ignore 11`` is no ``--ignore-index 11``, since ``check`` has an ``--ignore`` that means something else.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments, allow_abbrev=False)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Tuple[Any, List[str]]:  # type: ignore[override]
        # A subparser would leave the words to the parser above, whose usage has no options of this command.
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self._refuse(unknown)
        return found, unknown

    def error(self, message: str) -> NoReturn:
        super().error(visible(message))

    def _refuse(self, unknown: Sequence[str]) -> NoReturn:
        options = [word.partition('=')[0] for word in unknown if word.startswith('-')]
        if not options:
            self.error(f'unrecognized arguments: {" ".join(unknown)}')
        named = []
        for option in options:
            nearest = _nearest(option, self._option_string_actions)
            named.append(f'{option} (did you mean {nearest}?)' if nearest else option)
        self.error(f'no such option: {", ".join(named)}')


def _nearest(option: str, known: Iterable[str]) -> Optional[str]:
    known = list(known)
    begun = [name for name in known if name.startswith(option)]
    return next(iter(begun or difflib.get_close_matches(option, known, n=1)), None)
