import subprocess
import sys
from pathlib import Path

PROTOCOL = """
import sys, types
package = types.ModuleType("ottla")
package.__path__ = [sys.argv[1]]
sys.modules["ottla"] = package
before = set(sys.modules)
import ottla.protocol.codec, ottla.protocol.header, ottla.protocol.framing
from ottla.protocol.api_key import ApiKey
from ottla.protocol.messages import request_of
request_of(ApiKey.HEARTBEAT)
print(*sorted(set(sys.modules) - before))
"""


def test_a_request_imports_the_messages_of_its_own_api_and_nothing_costly(root: Path) -> None:
    # The package's own face would bring the engine along.
    done = subprocess.run(
        [sys.executable, "-c", PROTOCOL, root / "python" / "ottla"],
        capture_output=True,
        text=True,
        check=True,
    )
    imported = set(done.stdout.split())
    assert {name for name in imported if name.startswith("ottla.protocol.messages.")} == {
        "ottla.protocol.messages.heartbeat"
    }
    costly = {"asyncio", "dataclasses", "inspect", "json", "logging", "numpy", "ssl", "threading"}
    assert imported & costly == set()
