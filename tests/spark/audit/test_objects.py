"""Objects of a store are audited and read by tasks as the embedded audit reads them."""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ottla
import ottla.spark
import pytest
from ottla.audit.plan.plan import plan_audit
from ottla.audit.result.columns import TABLES
from ottla.errors import SparkError
from ottla.spark.audit import runner, tasks
from ottla.spark.audit.bins import make_bins
from ottla.storage import sending_secrets
from support.clusters import Sessions
from support.frames import arrow_of
from support.logs import META_PROPERTIES, hurt_partition, segment_name, write_log_directory
from support.stores import Store, missing, requests_in, s3_server

# The module, over which the package binds the function of its name.

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    """Return an S3 server that the workers reach."""
    if reason := missing():
        pytest.skip(reason)
    with s3_server() as url:
        yield Store(url)


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """Return a log directory of which the next start cuts off a part of each partition."""
    for number in range(12):
        partition = hurt_partition(tmp_path / f"logs/orders-{number}")
        (partition / segment_name(0, "index")).write_bytes(bytes(8))
        (partition / segment_name(24, "snapshot")).write_bytes(b"none")
    offsets = "0\n12\n" + "".join(f"orders {number} 12\n" for number in range(12))
    for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint"):
        (tmp_path / "logs" / name).write_text(offsets)
    (tmp_path / "logs/meta.properties").write_text(META_PROPERTIES)
    return tmp_path / "logs"


def test_tasks_and_driver_request_each_small_object_twice_at_most(
    spark: Any, broken: Path, tmp_path: Path
) -> None:
    log = tmp_path / "requests"
    with s3_server(log) as url:
        store = Store(url)
        uri = store.upload(broken, store.bucket() + "/logs")
        before = requests_in(log)
        result = ottla.spark.audit(spark, uri, storage_options=store.options)
        requests = requests_in(log) - before
    assert {len(deed.partitions) for deed in result.advice} == {12}
    segments = [n for (_, path), n in requests.items() if path.endswith(".log")]
    assert len(segments) == 36
    existing = {f"/{uri.removeprefix('s3://')}/{p.relative_to(broken)}" for p in broken.rglob("*")}
    asked = {key: n for key, n in requests.items() if key[1] in existing}
    assert {key: n for key, n in asked.items() if n > 2} == {}


@pytest.mark.parametrize("split_bytes", [None, 65_536])
def test_objects_are_the_same_on_spark(
    spark: Any, store: Store, demo: Path, split_bytes: int | None
) -> None:
    uri = store.upload(demo, store.bucket() + "/logs")
    embedded = ottla.audit(uri, storage_options=store.options)
    result = ottla.spark.audit(spark, uri, split_bytes=split_bytes, storage_options=store.options)
    assert result.summary == embedded.summary
    for name in ("files", "findings", "gaps", "transactions", "recovery", "batches", "records"):
        expected = getattr(embedded, name).to_arrow()
        assert arrow_of(getattr(result, name)).to_pylist() == expected.to_pylist(), name


@pytest.mark.parametrize("kind", ["cluster", "connect"])
def test_workers_that_got_ottla_by_ship_read_objects(
    sessions: Sessions, store: Store, demo: Path, kind: str
) -> None:
    uri = store.upload(demo, store.bucket() + "/logs")
    embedded = ottla.audit(uri, storage_options=store.options)
    session = sessions.get(kind)
    ottla.spark.ship(session)
    result = ottla.spark.audit(session, uri, split_bytes=65_536, storage_options=store.options)
    assert result.summary == embedded.summary
    collected = result.collect()
    for name in TABLES:
        assert list(getattr(collected, name)) == list(getattr(embedded, name)), name
    # Read by tasks once more.
    assert arrow_of(result.records).to_pylist() == embedded.records.to_arrow().to_pylist()


def test_workers_without_obstore_say_what_to_install_there(
    new_cluster: Any, sessions: Sessions, store: Store, demo: Path
) -> None:
    uri = store.upload(demo, store.bucket() + "/logs")
    ottla.spark.ship(new_cluster)
    assert sessions.processes is not None
    package = sessions.processes.directory / "packages" / "obstore"
    aside = package.rename(package.with_name("aside"))
    try:
        with pytest.raises(SparkError) as raised:
            ottla.spark.audit(new_cluster, uri, storage_options=store.options)
    finally:
        aside.rename(package)
    said, *_ = str(raised.value).splitlines()
    assert "the Python worker" in said
    assert "lacks a package: install it there" in said
    assert "obstore: pip install 'ottla[objects]'" in said
    assert store.options["secret_access_key"] not in said


def test_an_object_that_vanishes_does_not_fail_the_job(
    spark: Any, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = store.upload(write_log_directory(tmp_path / "logs"), store.bucket() + "/logs")

    def after_listing(*arguments: Any, **options: Any) -> Any:
        store.delete(f"{uri}/orders-0/{segment_name(12)}")
        return make_bins(*arguments, **options)

    monkeypatch.setattr(runner, "make_bins", after_listing)
    result = ottla.spark.audit(spark, uri, storage_options=store.options)
    assert result.exit_code == 3
    (said,) = [f["message"] for f in result.collect().findings if f["name"] == "unreadable"]
    assert said == f"orders-0/{segment_name(12)}: no such object"


def test_no_row_of_a_task_has_a_secret(store: Store, demo: Path) -> None:
    """Rows are what shuffles leave in files; settings travel with the functions of a job."""
    uri = store.upload(demo, store.bucket() + "/logs")
    value = "only-in-functions-0123456789"
    options = {**store.options, "secret_access_key": value}
    plan = plan_audit(uri, storage_options=options).split(65_536)
    bins = make_bins(plan, level="full", now_ms=0, bin_bytes=1 << 30)
    rows = list(tasks.scan_rows(bins)(iter(range(len(bins)))))
    assert {row[4] for row in rows} >= {"log", "scan"}
    assert not [row for row in rows if value.encode() in row[5]]
    with sending_secrets():
        sent = pickle.dumps([item.request.place for item in bins.load(0)[1]])
    assert value.encode() in sent
