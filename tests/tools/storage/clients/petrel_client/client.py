"""Its client: buckets are folders below the one that its config file names."""

from __future__ import annotations

from pathlib import Path
from typing import Iterator, Optional


class Client:
    """What PetrelBackend calls."""

    def __init__(self, conf_path: str, enable_mc: bool = True) -> None:
        self._root = Path(Path(conf_path).read_text())

    def _at(self, url: str) -> Path:
        assert url.startswith('s3://'), url
        return self._root / url[len('s3://') :]

    def Get(self, url: str) -> Optional[bytes]:
        return self._at(url).read_bytes() if self.contains(url) else None

    def contains(self, url: str) -> bool:
        return self._at(url).is_file()

    def isdir(self, url: str) -> bool:
        return self._at(url).is_dir()

    def list(self, url: str) -> Iterator[str]:
        return (f'{path.name}/' if path.is_dir() else path.name for path in self._at(url).iterdir())
