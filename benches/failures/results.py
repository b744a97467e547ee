"""What was measured, as a file: clients, and what each scenario observed of them."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benches.failures.client import Client, command_of
from benches.failures.scenarios import SCENARIOS, Observed, Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

RESULTS = Path(__file__).with_name("results.json")
_AT_ONCE = 3


@dataclass
class Results:
    """What was measured.

    Attributes:
        clients: version and settings, by client.
        observed: by scenario, and then by client.
    """

    clients: dict[str, dict[str, Any]] = field(default_factory=dict)
    observed: dict[str, dict[str, Observed]] = field(default_factory=dict)

    def text(self) -> str:
        """Return it as it is in the file."""
        observed = {
            name: {client: asdict(seen) for client, seen in by_client.items()}
            for name, by_client in self.observed.items()
        }
        return json.dumps({"clients": self.clients, "observed": observed}, indent=1) + "\n"


def load() -> Results:
    """Return what was measured last."""
    if not RESULTS.exists():
        return Results()
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    observed = {
        name: {client: Observed(**seen) for client, seen in by_client.items()}
        for name, by_client in found["observed"].items()
    }
    return Results(found["clients"], observed)


def observe(client: str, name: str) -> tuple[Observed, dict[str, dict[str, Any]]]:
    """Return what a client does in a scenario, and the settings that it did it with."""
    scenario = SCENARIOS[name]
    stage = Stage(client, scenario.profile)
    try:
        return scenario.run(stage), stage.settings
    finally:
        stage.close()


def version_of(client: str) -> str:
    """Return the version of a client that runs here."""
    agent = Client(command_of(client))
    try:
        return agent.ask("about").version
    finally:
        agent.close()


def measure(
    results: Results, clients: Sequence[str], names: Sequence[str], say: Callable[[str], None]
) -> None:
    """Put into results what clients do in scenarios."""
    for client in clients:
        known = results.clients.setdefault(client, {})
        known["version"] = version_of(client)

    def run(pair: tuple[str, str]) -> None:
        client, name = pair
        seen, settings = observe(client, name)
        met = sum(wish.is_met(seen) for wish in SCENARIOS[name].wishes)
        say(f"{client}: {name}: {met} of {len(SCENARIOS[name].wishes)}")
        results.observed.setdefault(name, {})[client] = seen
        for what, values in settings.items():
            _note_settings(results.clients[client].setdefault(what, {}), values)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(run, [(client, name) for name in names for client in clients]))
    results.observed = {
        name: dict(sorted(results.observed[name].items()))
        for name in SCENARIOS
        if name in results.observed
    }
    results.clients = dict(sorted(results.clients.items()))


def _note_settings(known: dict[str, Any], values: dict[str, Any]) -> None:
    # What differs between scenarios is said by these.
    told = {name: value for name, value in values.items() if _plain(name) not in _VARIED}
    known.update(sorted(told.items()))


_VARIED = {
    "enableidempotence",
    "transactionalid",
    "transactiontimeoutms",
    "groupid",
    "autooffsetreset",
    "isolationlevel",
}


def _plain(name: str) -> str:
    return name.replace(".", "").replace("_", "")
