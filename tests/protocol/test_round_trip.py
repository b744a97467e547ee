from random import Random

import pytest
from ottla.protocol.codec import decode, encode
from ottla.protocol.wire import schema
from support.messages import any_message, messages_of, modules


@pytest.mark.parametrize("name", modules())
def test_what_is_written_is_read_again_in_every_version(name: str) -> None:
    random = Random(name)
    for message in messages_of(modules()[name]):
        for version in schema(message).versions:
            for _ in range(5):
                written = any_message(message, version, random)
                frame = b"ahead" + b"".join(encode(message, version)(written))
                assert decode(message, version)(frame + b"behind", 5) == (written, len(frame))


@pytest.mark.parametrize("name", modules())
def test_a_new_message_is_one_of_defaults_in_every_version(name: str) -> None:
    for message in messages_of(modules()[name]):
        for version in schema(message).versions:
            frame = b"".join(encode(message, version)(message()))
            assert decode(message, version)(frame, 0) == (message(), len(frame))
