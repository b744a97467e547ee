"""The version of the engine, which is that of Ottla."""

from ottla._engine import __version__

__all__ = ["__version__"]
