"""The kinds of input that commands read: a small one of each, how it is damaged, and what is then run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from mutations import Random

Step = Callable[[Random, bytes], bytes]
#: A file's name -> its content, and the ways to damage it beside the bytewise one.
Files = Dict[str, Tuple[bytes, Sequence[Step]]]


@dataclass
class Kind:
    """One kind of input.

    Args:
        name (str): Of it.
        files (callable): Its small inputs, and how each is damaged. One without any way is left as it is.
        commands (list[str]): Each in a line; ``{file}`` is the file that was damaged, ``{out}`` a folder for outputs.
            They run in the folder of the inputs.
        options (list[str]): One of these goes with the command, or none.
        needs (list[str]): Packages.
        loads (callable, optional): Reads with the real loader what scans clean, from the folder, the damaged file and
            the command.
        renamed (bool): Whether the name of a file may be damaged, too.
        writes_anywhere (bool): Whether a command may be asked to write among its inputs.
    """

    name: str
    files: Callable[[], Files]
    commands: Sequence[str]
    options: Dict[str, Sequence[str]] = field(default_factory=dict)
    needs: Sequence[str] = ()
    loads: Optional[Callable[[Path, str, List[str]], None]] = None
    renamed: bool = False
    writes_anywhere: bool = False

    def drawn_command(self, draw: Random, file: str) -> List[str]:
        """A command for a damaged file."""
        words = draw.choice(self.commands).split()
        if draw.random() < 0.4:
            words += draw.choice(list(self.options.get(words[0], [''])) or ['']).split()
        return [word.replace('{file}', file) for word in words]
