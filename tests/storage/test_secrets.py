"""Secrets of stores are in no repr and in no pickle, except in what a task is sent."""

import pickle

from ottla.audit.run.scan import ScanRequest
from ottla.storage import AnyFiles, Place, StorageOptions, again, sending_secrets
from ottla.storage.objects import ObjectFiles

VALUE = "wJalrXUtnFEMI"
OPTIONS = {
    "region": "eu-central-1",
    "secret_access_key": VALUE,
    "endpoint": f"http://user:{VALUE}@store",
}
FILES = ObjectFiles(b"s3://bucket", OPTIONS)
PLACE = FILES.place(b"s3://bucket/orders-0/0.log", 100)


def request(place: Place) -> ScanRequest:
    return ScanRequest(
        place=place,
        size=100,
        base_offset=0,
        next_base_offset=None,
        is_active=True,
        stopped_cleanly=False,
        is_consumer_offsets=False,
        is_compared=False,
        offset_index=place,
        time_index=None,
        level="full",
        now_ms=0,
    )


def test_no_repr_and_no_pickle_has_a_secret() -> None:
    for holder in (StorageOptions(OPTIONS), AnyFiles(OPTIONS), FILES, PLACE, request(PLACE)):
        assert VALUE not in repr(holder)
        assert VALUE.encode() not in pickle.dumps(holder)
        assert "eu-central-1" in str(StorageOptions(OPTIONS))


def test_what_a_task_is_sent_has_them() -> None:
    with sending_secrets():
        data = pickle.dumps(request(PLACE))
    assert VALUE.encode() in data
    assert pickle.loads(data).place == PLACE  # noqa: S301


def test_a_place_without_them_is_read_again_by_files_that_have_them() -> None:
    lost = pickle.loads(pickle.dumps(request(PLACE)))  # noqa: S301
    assert lost.place != PLACE
    assert lost.read_by(AnyFiles(OPTIONS)) == request(PLACE)
    local = AnyFiles().place(b"/var/lib/kafka/0.log")
    assert again(local, AnyFiles()) is local
