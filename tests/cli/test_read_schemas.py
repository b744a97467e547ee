"""What keys and values say: JSON, Avro with a file or a registry, Protobuf with descriptors."""

import io
import json
import sys
import threading
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from support.commands import Ran, Run
from support.logs import TIMESTAMP, write_partition

from benches.data import encode_batch

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "item", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "raw", "type": "bytes"},
    ],
}
AT = datetime(2026, 11, 21, tzinfo=timezone.utc)
JUNK = [b"", b"\0", b"\0\0\0\0", b"\0\0\0\0\7", b"\0\0\0\0\7" + b"\xff" * 40, b"\xff" * 20, b"{"]


def write_values(directory: Path, *values: bytes | None, key: bytes | None = None) -> Path:
    batch = encode_batch([(TIMESTAMP, key, value, ()) for value in values])
    return write_partition(directory / "orders-0", {0: batch})


def avro(schema: Any, value: Any, number: int = 7) -> bytes:
    body = io.BytesIO()
    parsed = fastavro.parse_schema(schema, named_schemas={})
    fastavro.schemaless_writer(body, parsed, value)
    return b"\0" + number.to_bytes(4, "big") + body.getvalue()


def order(number: int) -> bytes:
    return avro(ORDER, {"id": number, "item": "téa", "at": AT, "raw": b"\xff"})


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "order.avsc"
    path.write_text(json.dumps(ORDER))
    return path


def values(ran: Ran) -> list[Any]:
    return [json.loads(line)["value"] for line in ran.out.splitlines()]


def said(ran: Ran) -> str:
    return " ".join(ran.err.split())


def test_json_becomes_part_of_the_line_with_its_numbers_as_written(
    run: Run, tmp_path: Path
) -> None:
    numbers = b'{"price": 1.10,\n "id": 123456789012345678901234567890, "big": 1e400}'
    path = write_values(tmp_path, numbers, b"\0\0\0\0\7[1]", None, '"\u202e"'.encode())
    lines = run("read", path, "-s", "value=json", "-J").out.splitlines()
    assert (
        '"value": {"price": 1.10,  "id": 123456789012345678901234567890, "big": 1e400}' in lines[0]
    )
    assert [json.loads(line)["value"] for line in lines[1:]] == [[1], None, "\u202e"]
    assert "\u202e" not in lines[3]


@pytest.mark.parametrize("value", [b"{", b"NaN", b"\xff", b"", b"[" * 100_000])
def test_what_is_no_json_is_told_with_its_place(run: Run, tmp_path: Path, value: bytes) -> None:
    path = write_values(tmp_path, b"1", value)
    ran = run("read", path, "-s", "json", "-J")
    assert ran.status == 3
    assert values(ran) == [1]
    assert f"ottla: {path}: the value at offset 1: " in ran.err
    assert ran.err.endswith("; --from 2 goes on behind it\n")


def test_avro_is_read_by_a_schema_from_a_file(run: Run, tmp_path: Path, schema: Path) -> None:
    path = write_values(tmp_path, order(1), None, order(-5))
    ran = run("read", path, "-J", "-s", "value=avro", "--value-schema", schema)
    assert (ran.status, ran.err) == (0, "")
    assert values(ran) == [
        {"id": 1, "item": "téa", "at": AT.isoformat(), "raw": {"base64": "/w=="}},
        None,
        {"id": -5, "item": "téa", "at": AT.isoformat(), "raw": {"base64": "/w=="}},
    ]


def test_an_id_that_no_schema_has_is_named(run: Run, tmp_path: Path, schema: Path) -> None:
    other = avro("string", "x", 9)
    path = write_values(tmp_path, order(1), other)
    ran = run("read", path, "-J", "-s", "value=avro", "--value-schema", schema)
    assert ran.status == 3
    assert len(values(ran)) == 1
    assert (
        f"the value at offset 1: schema id 9 is not known, only 7 ({schema} was taken for that of"
        " id 7, the first one met): add 9=FILE, or the --registry"
    ) in ran.err
    (tmp_path / "text.avsc").write_text('"string"')
    files = ("--value-schema", f"7={schema}", "--value-schema", f"9={tmp_path / 'text.avsc'}")
    assert values(run("read", path, "-J", "-s", "value=avro", *files))[1] == "x"


@pytest.mark.parametrize("value", [*JUNK, order(1)[:-1], order(1) + b"x", order(1)[:6]])
def test_avro_that_does_not_fit_is_an_error_and_no_crash(
    run: Run, tmp_path: Path, schema: Path, value: bytes
) -> None:
    path = write_values(tmp_path, order(1), value)
    ran = run("read", path, "-J", "-s", "value=avro", "--value-schema", f"7={schema}")
    assert ran.status == 3
    assert len(values(ran)) == 1
    assert "the value at offset 1: " in ran.err
    assert "position" in ran.err or "not known" in ran.err
    assert "internal" not in ran.err


@pytest.mark.parametrize(
    "text", ["", "{", '{"type": "record"}', '"no.such.Name"', "[1]", "\xff", '{"type": ' * 5000]
)
def test_a_file_that_is_no_avro_schema_is_wrong_usage(run: Run, tmp_path: Path, text: str) -> None:
    path = write_values(tmp_path, order(1))
    (tmp_path / "bad.avsc").write_text(text, encoding="latin-1")
    ran = run(
        "read",
        path,
        "-s",
        "avro",
        "--value-schema",
        tmp_path / "bad.avsc",
        "--key-schema",
        tmp_path / "bad.avsc",
    )
    assert (ran.status, ran.out) == (64, "")
    assert "bad.avsc is no Avro schema" in said(ran)


def test_a_schema_file_that_is_not_there_is_named(run: Run, tmp_path: Path, schema: Path) -> None:
    path = write_values(tmp_path, order(1))
    ran = run("read", path, "-s", "value=avro", "--value-schema", tmp_path / "ordre.avsc")
    assert ran.status == 3
    assert f"did you mean {schema}?" in ran.err


@pytest.fixture
def registry() -> Iterator[tuple[str, dict[str, object]]]:
    """A schema registry: its URL with a user, and its answers by path."""
    answers: dict[str, object] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = answers.get(self.path)
            if self.headers["Authorization"] != "Basic YW5uOnMzY3JldA==":
                self.send_error(401)
            elif found is None:
                self.send_error(404)
            else:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(found if isinstance(found, bytes) else json.dumps(found).encode())

        def log_message(self, *_arguments: object) -> None:
            """Nothing is logged."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://ann:s3cret@127.0.0.1:{server.server_port}", answers
        server.shutdown()
        thread.join()


def test_a_registry_knows_schemas_by_their_ids(
    run: Run, tmp_path: Path, registry: tuple[str, dict[str, object]]
) -> None:
    url, answers = registry
    using = {"type": "record", "name": "Basket", "fields": [{"name": "one", "type": "Order"}]}
    answers["/schemas/ids/8"] = {
        "schema": json.dumps(using),
        "references": [{"name": "Order", "subject": "order value", "version": 3}],
    }
    answers["/subjects/order%20value/versions/3"] = {"schema": json.dumps(ORDER)}
    whole = {**using, "fields": [{"name": "one", "type": ORDER}]}
    one = {"id": 1, "item": None, "at": AT, "raw": b"r"}
    path = write_values(tmp_path, avro(whole, {"one": one}, 8))
    ran = run("read", path, "-J", "-s", "value=avro", "-r", url)
    assert ran.status == 0, ran.err
    assert values(ran) == [{"one": {"id": 1, "item": None, "at": AT.isoformat(), "raw": "r"}}]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "schema id 7 is not known to http://127.0.0.1:"),
        (b"<html>", "answers no JSON to schema id 7"),
        ([], "answers no schema to schema id 7"),
        ({"schema": 1}, "schema id 7 has no text of a schema"),
        ({"schema": "{", "schemaType": "PROTOBUF"}, "schema id 7 is a schema of PROTOBUF"),
        ({"schema": "{"}, "schema id 7 is no Avro schema"),
        ({"schema": '"int"', "references": [{}]}, "refers to another without subject"),
    ],
)
def test_what_a_registry_cannot_give_is_told_without_its_password(
    run: Run,
    tmp_path: Path,
    registry: tuple[str, dict[str, object]],
    answer: object,
    words: str,
) -> None:
    url, answers = registry
    answers["/schemas/ids/7"] = answer
    path = write_values(tmp_path, order(1))
    ran = run("read", path, "-J", "-s", "value=avro", "-r", url)
    assert (ran.status, ran.out) == (3, "")
    assert words in ran.err
    assert "s3cret" not in ran.err


def test_a_registry_that_is_not_there_is_told(run: Run, tmp_path: Path) -> None:
    path = write_values(tmp_path, order(1))
    ran = run("read", path, "-s", "value=avro", "-r", "http://127.0.0.1:9/")
    assert ran.status == 3
    assert "http://127.0.0.1:9 cannot be asked for schema id 7: " in ran.err
    ran = run("read", path, "-s", "value=avro", "-r", "ann:s3cret@localhost")
    assert ran.status == 64
    assert "s3cret" not in ran.err


def descriptors(messages: Mapping[str, Mapping[str, int]]) -> descriptor_pb2.FileDescriptorSet:
    """Messages of text fields and their numbers; the second of a name with a dot is inside."""
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    by_name: dict[str, Any] = {}
    for name, fields in messages.items():
        outer, _, inner = name.rpartition(".")
        message = (by_name[outer].nested_type if outer else file.message_type).add(name=inner)
        by_name[name] = message
        for field, number in fields.items():
            kind = descriptor_pb2.FieldDescriptorProto
            message.field.add(
                name=field, number=number, type=kind.TYPE_STRING, label=kind.LABEL_OPTIONAL
            )
    return descriptor_pb2.FileDescriptorSet(file=[file])


SHOP = descriptors({"Order": {"order_id": 1}, "Order.Line": {"item": 1, "note": 2}})


def message(name: str, **fields: str) -> bytes:
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(SHOP.file[0].SerializeToString())
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName(f"shop.{name}"))
    return bytes(made(**fields).SerializeToString())


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.desc"
    path.write_bytes(SHOP.SerializeToString())
    return path


def test_protobuf_is_read_by_descriptors(run: Run, tmp_path: Path, shop: Path) -> None:
    first = b"\0\0\0\0\1"
    path = write_values(
        tmp_path,
        message("Order", order_id="a"),
        first + b"\0" + message("Order", order_id="b"),
        first + b"\x04\0\0" + message("Order.Line", item="c"),
        b"",
    )
    ran = run("read", path, "-J", "-s", "value=protobuf", "--value-schema", shop)
    assert (ran.status, ran.err) == (0, "")
    assert values(ran) == [{"order_id": "a"}, {"order_id": "b"}, {"item": "c"}, {}]
    named = ("--value-message", "shop.Order.Line")
    ran = run("read", path, "-J", "-s", "value=protobuf", "--value-schema", shop, *named)
    assert values(ran) == [{"item": "a"}, {"item": "b"}, {"item": "c"}, {}]


def test_fields_that_no_descriptor_has_are_counted(run: Run, tmp_path: Path, shop: Path) -> None:
    path = write_values(tmp_path, message("Order.Line", item="a", note="b"), b"")
    ran = run("read", path, "-J", "-s", "value=protobuf", "--value-schema", shop)
    assert values(ran) == [{"order_id": "a"}, {}]
    assert ran.err == (
        f"ottla: values: 1 message with fields that {shop} does not know, which are left out\n"
    )


@pytest.mark.parametrize("value", [b"\0", *JUNK[1:6], b"\0\0\0\0\1\x02\x7e", b"\x0a\x7fx"])
def test_protobuf_that_does_not_fit_is_an_error_and_no_crash(
    run: Run, tmp_path: Path, shop: Path, value: bytes
) -> None:
    path = write_values(tmp_path, b"", value)
    ran = run("read", path, "-J", "-s", "value=protobuf", "--value-schema", shop)
    assert (ran.status, values(ran)) == (3, [{}])
    assert "the value at offset 1: " in ran.err
    assert "internal" not in ran.err


@pytest.mark.parametrize("data", [b"", b"\xff\xff", b'syntax = "proto3";'])
def test_a_file_that_has_no_descriptors_says_how_to_make_them(
    run: Run, tmp_path: Path, data: bytes
) -> None:
    path = write_values(tmp_path, b"")
    (tmp_path / "bad.desc").write_bytes(data)
    file = ("--value-schema", tmp_path / "bad.desc")
    ran = run("read", path, "-s", "value=protobuf", *file)
    assert ran.status == 64
    assert "is no set of Protobuf descriptors: protoc --include_imports" in said(ran)


def test_descriptors_without_what_they_use_or_without_the_message_are_wrong_usage(
    run: Run, tmp_path: Path, shop: Path
) -> None:
    path = write_values(tmp_path, b"")
    asked = ("read", path, "-s", "value=protobuf", "--value-schema")
    ran = run(*asked, shop, "--value-message", "shop.Ordre")
    assert ran.status == 64
    assert "has no message shop.Ordre, but shop.Order" in said(ran)
    lacking = descriptor_pb2.FileDescriptorSet(file=[SHOP.file[0]])
    lacking.file[0].dependency.append("elsewhere.proto")
    (tmp_path / "lacking.desc").write_bytes(lacking.SerializeToString())
    ran = run(*asked, tmp_path / "lacking.desc")
    assert ran.status == 64
    assert "lacks what its messages use" in said(ran)


def test_keys_and_values_have_deserialisers_of_their_own(
    run: Run, tmp_path: Path, schema: Path
) -> None:
    path = write_values(tmp_path, order(1), key=b'{"a": 1}')
    asked = ("-s", "key=json", "-s", "value=avro", "--value-schema", schema)
    assert run("read", path, *asked, "-f", "%k\n").out == '{"a": 1}\n'
    assert 'key={"a": 1} value={"id": 1, ' in run("read", path, *asked).out
    target = tmp_path / "out.parquet"
    assert run("read", path, *asked, "--output-file", target).status == 0
    (row,) = pq.read_table(target).to_pylist()
    assert (row["key"], json.loads(row["value"])["id"]) == ('{"a": 1}', 1)


def test_a_record_that_does_not_fit_leaves_no_file(run: Run, tmp_path: Path) -> None:
    path = write_values(tmp_path, b"1", b"{")
    for option in ("--output", "--output-file"):
        ran = run("read", path, "-s", "json", option, tmp_path / "out.csv")
        assert ran.status == 3
        assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    "options",
    [
        ("-s", "xml"),
        ("-s", "header=json"),
        ("-s", "json", "-s", "key=avro"),
        ("-s", "avro"),
        ("-s", "protobuf"),
        ("-s", "json", "--value-schema", "x"),
        ("-s", "json", "-r", "http://localhost"),
        ("--key-message", "x"),
        ("-s", "json", "--decode"),
    ],
)
def test_options_that_do_not_go_together_are_wrong_usage(
    run: Run, tmp_path: Path, options: tuple[str, ...]
) -> None:
    path = write_values(tmp_path, b"1")
    assert run("read", path, *options).status == 64


@pytest.mark.parametrize(
    ("name", "package"), [("avro", "fastavro"), ("protobuf", "google.protobuf")]
)
def test_a_library_that_is_missing_is_named_with_how_to_install_it(
    run: Run, schema: Path, monkeypatch: pytest.MonkeyPatch, name: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"ottla.cli.reading.{name}", raising=False)
    path = write_values(schema.parent, b"1")
    ran = run("read", path, "-s", f"value={name}", "--value-schema", schema)
    assert ran.status == 3
    assert "pip install 'ottla[schemas]'" in ran.err
