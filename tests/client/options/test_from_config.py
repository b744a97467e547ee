"""Clients take configurations with dotted names, and warn where these are given."""

import asyncio
from typing import Any

import pytest
from ottla.client import Admin, AsyncAdmin, AsyncProducer, IgnoredOptionWarning, Producer

CONFIG = {"bootstrap.servers": "127.0.0.1:1", "client.id": "moved", "debug": "all"}


@pytest.mark.parametrize("client", [Producer, Admin])
def test_a_client_of_a_configuration_warns_where_that_is_given(client: Any) -> None:
    with pytest.warns(IgnoredOptionWarning, match="debug has no effect") as warned:
        made = client.from_config(CONFIG)
    made.close()
    assert [one.filename for one in warned] == [__file__]


@pytest.mark.parametrize("client", [AsyncProducer, AsyncAdmin])
def test_a_client_on_asyncio_takes_a_configuration_too(client: Any) -> None:
    async def main() -> None:
        with pytest.warns(IgnoredOptionWarning, match="debug has no effect"):
            made = client.from_config(CONFIG)
        await made.close()

    asyncio.run(main())
