"""Loading a function's code: the part of a cold start that is ours."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def without_collections() -> Iterator[None]:
    """Run the block without garbage collections, and keep what it made out of all later ones.

    Nearly everything that imports make stays for as long as the process: collections during them look at ever
    more objects and find nothing to free, and each one after them would look at all of it again.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if collecting:
            gc.enable()


def made_late(module: str, **makers: Callable[[], Any]) -> Callable[[str], Any]:
    """A module's ``__getattr__``: its attributes are made when Lambda looks for them, so that others can import it.

    Parameters
    ----------
    module
        Name of the module.
    makers
        Makes each attribute, once.
    """

    def get(name: str) -> Any:
        make = makers.get(name)
        if make is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        with without_collections():
            made = make()
        setattr(sys.modules[module], name, made)
        return made

    return get
