"""Entry points with which packages and plugins add rules, formats and commands to mmguard."""

from __future__ import annotations

import os
import sys
from importlib import metadata
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

from mmguard.errors import CannotRun
from mmguard.text import describe_error

#: Folder of mmguard. A plugin in this folder, such as ``nnunet``, lists its entry points in ``entry_points.txt``.
_HOME = Path(__file__).parent


class EntryPoint(NamedTuple):
    """Entry point of a package, not yet imported."""

    name: str  #: Name of the entry point, such as the code of a rule.
    package: str  #: Package and version, ``'acme-rules 1.0'``; empty for a plugin in mmguard's own folder.
    point: Any  #: ``importlib.metadata.EntryPoint``.

    def load(self, build: Callable[[Any], Any] = lambda named: named) -> Any:
        """Import the object of the entry point, and return ``build(object)``.

        Raises:
            CannotRun: The import or ``build`` raises an exception.
        """
        try:
            return build(self.point.load())
        except (Exception, SystemExit) as error:  # a package may raise anything
            raise CannotRun(f'{self.name} of {self.package} cannot be loaded: {describe_error(error)}') from error


def find_entry_points(group: str) -> List[EntryPoint]:
    """Return the entry points of a group, sorted by package and name; a package that is found twice counts once.

    Plugins in mmguard's own folder come last. Package metadata in the working directory is ignored, even if a config
    added this directory to ``sys.path``.
    """
    places = [path for path in sys.path if os.path.abspath(path) != os.getcwd()]
    found: Dict[Tuple[str, str], EntryPoint] = {}
    own = [metadata.PathDistribution(file.parent) for file in _HOME.glob('*/entry_points.txt')]
    for package in (*own, *metadata.distributions(path=places)):
        try:
            points = [point for point in package.entry_points if point.group == group]
            name = f'{package.metadata["Name"]} {package.version}' if points and package not in own else ''
        except Exception:  # skip a package with damaged metadata
            continue
        for point in points:
            found.setdefault((name.partition(' ')[0], point.name), EntryPoint(point.name, name, point))
    return [found[key] for key in sorted(found, key=lambda key: (not key[0], key))]
