"""Settings of object stores, which hold secrets: not for reprs, and pickled for workers only."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PUBLIC = frozenset(
    (
        "allow_http",
        "connect_timeout",
        "default_region",
        "region",
        "skip_signature",
        "timeout",
        "virtual_hosted_style_request",
    )
)
"""Names of settings that are shown and pickled; any other may be a secret."""

_VENDORS = ("aws_", "google_", "azure_")


def _is_public(name: str, value: str) -> bool:
    bare = name.lower()
    bare = next((bare.removeprefix(v) for v in _VENDORS if bare.startswith(v)), bare)
    # A URL may hold a name and a password, or be signed.
    is_plain_url = bare in ("endpoint", "endpoint_url") and not set(value) & {"@", "?"}
    return bare in _PUBLIC or is_plain_url


_is_sending: ContextVar[bool] = ContextVar("is_sending", default=False)


class StorageOptions(dict[str, str]):
    """Settings of object stores by name.

    >>> options = StorageOptions(region="eu-central-1", secret_access_key="hunter2")
    >>> options
    StorageOptions(region='eu-central-1', secret_access_key=...)

    A pickle has the public settings only: where it is unpickled, the environment has the secrets.

    >>> import pickle
    >>> pickle.loads(pickle.dumps(options))
    StorageOptions(region='eu-central-1')
    """

    def __repr__(self) -> str:
        shown = (f"{k}={v!r}" if _is_public(k, v) else f"{k}=..." for k, v in self.items())
        return f"StorageOptions({', '.join(shown)})"

    __str__ = __repr__

    def __reduce__(self) -> tuple[type[StorageOptions], tuple[dict[str, str]]]:
        return StorageOptions, (dict(self) if _is_sending.get() else self.public(),)

    def public(self) -> dict[str, str]:
        """Returns the settings that are no secrets."""
        return {name: value for name, value in self.items() if _is_public(name, value)}


@contextmanager
def sending_secrets() -> Iterator[None]:
    """In this block, pickles have all settings: for a task that reads in the caller's name."""
    token = _is_sending.set(True)
    try:
        yield
    finally:
        _is_sending.reset(token)
