"""Names of a package that are loaded when they are first asked for (PEP 562)."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def on_demand(package: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """Returns the `__getattr__` of a package: each name is in the module given for it.

    A module of the package may stand for itself: ``{"storage": "ottla.storage"}``.
    """

    def find(name: str) -> object:
        module = modules.get(name)
        if module is None:
            message = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(message, name=name, obj=sys.modules[package])
        found = import_module(module)
        value = found if module == f"{package}.{name}" else getattr(found, name)
        # The next time it is found without us.
        setattr(sys.modules[package], name, value)
        return value

    return find
