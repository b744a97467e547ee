"""The page about tests runs: every file in it, by what it is for, and every command."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.apache_messages import NEWEST
from support.go_programs import copied, go
from support.java_session import client_jars
from support.maven import MissingError
from support.programs import leave_out, required

PAGE = Path(__file__).parents[2] / "docs" / "broker" / "testing.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TIMEOUT_S = 120

SHOP = """
from contextlib import contextmanager

import confluent_kafka


def send_order(bootstrap_servers, topic, **settings):
    client = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap_servers, "retry.backoff.ms": 10, "log_level": 0, **settings}
    )
    client.produce(topic, b"1")
    assert client.flush(30) == 0


@contextmanager
def read_orders(bootstrap_servers, topic, group):
    client = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    client.subscribe([topic])
    found = None
    while found is None or found.error():
        found = client.poll(0.1)
    client.commit(found, asynchronous=False)
    yield client
    client.close()


if __name__ == "__main__":
    import sys

    send_order(*sys.argv[1:])
"""

SHOP_OF_NODE = """
import {{ spawn }} from "node:child_process";
import {{ once }} from "node:events";

export async function sendOrder(bootstrapServers, topic) {{
  const child = spawn({python!r}, ["shop.py", bootstrapServers, topic], {{ stdio: "inherit" }});
  const [code] = await once(child, "exit");
  if (code !== 0) throw new Error(`status ${{code}}`);
}}
"""


SHOP_OF_GO = """
package shop

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
)

func SendOrder(bootstrapServers, topic string) {
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrapServers))
	if err != nil {
		panic(err)
	}
	defer client.Close()
	order := &kgo.Record{Topic: topic, Value: []byte("1")}
	if err := client.ProduceSync(context.Background(), order).FirstErr(); err != nil {
		panic(err)
	}
}
"""

MODULE_OF_GO = "module shop\n\ngo 1.26.0\n\nrequire github.com/twmb/franz-go v1.22.2\n"

SHOP_OF_JAVA = """
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

public final class Shop {
    public static void sendOrder(String bootstrapServers, String topic) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrapServers);
        var text = new StringSerializer();
        try (var producer = new KafkaProducer<>(settings, text, text)) {
            producer.send(new ProducerRecord<>(topic, "1")).get();
        }
    }
}
"""


def blocks(language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall(PAGE.read_text()) if kind == language]


def files(language: str, mark: str) -> dict[str, str]:
    """Blocks by the name that their first line gives, which is a module's in Python."""
    found = {}
    for text in blocks(language):
        first = text.partition("\n")[0]
        assert first.startswith(mark), first
        found[first.removeprefix(mark).strip()] = text
    return found


def environment(folder: Path) -> dict[str, str]:
    """One in which `ottla` is ours."""
    tool = folder / "bin" / "ottla"
    tool.parent.mkdir()
    start = "from ottla_command import main; main()"
    tool.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{start}" "$@"\n')
    tool.chmod(0o755)
    return {**os.environ, "PATH": f"{tool.parent}{os.pathsep}{os.environ['PATH']}"}


def test_every_file_of_python_runs_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    found = files("python", "#")
    # What it is instead of needs a container.
    ast.parse(found.pop("before"))
    for name, text in found.items():
        (tmp_path / f"{name}.py").write_text(text)
    count = sum(text.count("    def test_") + text.count("\ndef test_") for text in found.values())
    assert count >= 10
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        cwd=tmp_path,
        check=False,
    )
    assert f"{count} passed" in done.stdout, done.stdout + done.stderr


def test_the_commands_of_the_shell_print_what_is_said(tmp_path: Path) -> None:
    required("curl")
    (console,) = blocks("console")
    command, ready = console.removeprefix("$ ").splitlines()
    (script,) = blocks("sh")
    with subprocess.Popen(
        ["sh", "-c", f"exec {command}"],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(tmp_path),
    ) as broker:
        try:
            assert broker.stdout is not None
            line = broker.stdout.readline()
            names = [pair.partition("=")[0] for pair in line.split()]
            assert names == [pair.partition("=")[0] for pair in ready.split()]
            said = dict(pair.split("=") for pair in line.split()[1:])
            done = subprocess.run(
                ["sh", "-eu", "-c", script],
                env={**os.environ, "CONTROL": said["control"], "TOKEN": said["token"]},
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
                check=True,
            )
        finally:
            broker.terminate()
    fault, topics, now_ms, waited, records = done.stdout.splitlines()
    assert (fault, topics) == ('{"result":1}', '{"result":{"orders":3}}')
    assert re.fullmatch(r'{"result":\d+}', now_ms)
    assert (waited, records) == ('{"result":null}', '{"result":{"records":[],"left_out":0}}')


def test_the_test_of_another_language_passes(tmp_path: Path) -> None:
    node = required("node")
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "shop.mjs").write_text(SHOP_OF_NODE.format(python=sys.executable))
    for name, text in files("javascript", "//").items():
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        [node, "--test", "orders.test.mjs"],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# pass 1" in done.stdout or "pass 1" in done.stdout


@pytest.mark.slow
def test_the_test_in_go_passes(tmp_path: Path) -> None:
    path = environment(tmp_path)["PATH"]
    source, folder = tmp_path / "source", tmp_path / "module"
    source.mkdir()
    (source / "go.mod").write_text(MODULE_OF_GO)
    (source / "shop.go").write_text(SHOP_OF_GO)
    for name, text in files("go", "//").items():
        (source / name).write_text(text)
    copied(source, folder)
    done = go(folder, "test", "-v", "./...", path=path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("--- PASS") == 2


@pytest.mark.slow
def test_the_test_in_java_passes(tmp_path: Path) -> None:
    try:
        jars = client_jars(NEWEST)
    except MissingError as error:
        leave_out(str(error))
    (tmp_path / "Shop.java").write_text(SHOP_OF_JAVA)
    for name, text in files("java", "//").items():
        (tmp_path / name).write_text(text)
    with_ottla = environment(tmp_path)
    class_path = ["-cp", f"{jars}/*:{tmp_path}"]
    sources = map(str, tmp_path.glob("*.java"))
    for command in (
        [required("javac"), *class_path, "-d", str(tmp_path), *sources],
        [required("java"), "-ea", *class_path, "OrdersTest"],
    ):
        done = subprocess.run(
            command,
            env=with_ottla,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
