"""CRC-32C, by the extension in the package `crc32c`.

The package itself asks `importlib.metadata` for its version when it is imported, which
brings in email, zipfile and csv: a tenth of the time that a broker takes to start. So its
extension is looked for and loaded alone; should it not be there, the package will do.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

from ..types import Buffer

Crc = Callable[[Buffer, int], int]

_crc32c: Crc | None = None


def checksum(data: Buffer, crc: int = 0) -> int:
    """CRC-32C of `data`, going on from `crc`."""
    global _crc32c
    if _crc32c is None:
        _crc32c = extension() or _package()
    return _crc32c(data, crc)


def extension() -> Crc | None:
    """The function of the extension, if it is where it is known to be."""
    package = PathFinder.find_spec("crc32c")
    if package is None or package.submodule_search_locations is None:
        return None
    inner = PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
    if inner is None or inner.loader is None:
        return None
    module = module_from_spec(inner)
    inner.loader.exec_module(module)
    return getattr(module, "crc32c", None)


def _package() -> Crc:
    from crc32c import crc32c

    return crc32c
