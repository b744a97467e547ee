"""What `ottla.testing` gives to a test is shown by an example, which the doctests run."""

import ottla.testing
import pytest
from ottla.testing.scope import Scope

_MEMBERS = [
    pytest.param(getattr(getattr(ottla.testing, each), name), id=f"{each}.{name}")
    for each in ottla.testing.__all__
    for name in dir(getattr(ottla.testing, each))
    if not name.startswith("_")
]


@pytest.mark.parametrize("member", [*_MEMBERS, Scope, ottla.testing.Broker])
def test_everything_public_has_an_example(member: object) -> None:
    assert ">>> " in (member.__doc__ or "")
