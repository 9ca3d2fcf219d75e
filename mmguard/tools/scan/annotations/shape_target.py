"""What is asked of a data set of shapes, whatever the tool that drew it."""

from __future__ import annotations

import os
from typing import Callable, List, NamedTuple, Optional, Sequence, TypeVar

from mmguard.tools.scan.annotations.faults import Faults

One = TypeVar('One')


class ShapeTarget(NamedTuple):
    """A folder of files, or one of them, and what the user says about it.

    Attributes:
        path (str): The folder, or one file.
        num_classes (int, optional): Classes of the head. Default: as many as there are names.
        class_names (sequence of str, optional): The classes. Default: as the format has them.
        images (str, optional): Folder of the images. Default: as the format has it.
        home (str, optional): Where the files lay when they were no copies. Default: where they are.
        look (bool): Whether images are looked for.
    """

    path: str
    num_classes: Optional[int] = None
    class_names: Optional[Sequence[str]] = None
    images: Optional[str] = None
    home: Optional[str] = None
    look: bool = True

    @property
    def root(self) -> str:
        """The folder that files are named from."""
        return folder_of(self.path)

    @property
    def home_root(self) -> str:
        """The folder that images are relative to."""
        return folder_of(self.home or self.path)

    def read(
        self,
        list_names: Callable[[str, Faults], List[str]],
        read_one: Callable[[str, str, Faults], Optional[One]],
        faults: Faults,
    ) -> List[One]:
        """What its files hold, without those of which nothing can be made.

        Args:
            list_names (callable): The names of files in a folder, relative to it.
            read_one (callable): Reads a file, of its path and its name.
            faults (Faults): Takes what is wrong.
        """
        is_folder = os.path.isdir(self.path)
        names = list_names(self.path, faults) if is_folder else [os.path.basename(self.path)]
        found = (read_one(os.path.join(self.root, name), name, faults) for name in names)
        return [one for one in found if one is not None]


def folder_of(path: str) -> str:
    """A folder itself, or the folder that a file lies in."""
    return path if os.path.isdir(path) else os.path.dirname(os.path.abspath(path))
