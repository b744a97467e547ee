"""What every agent in Python has in common: commands in, outcomes out.

A command is a line, its words separated by tabs; the answer is a line of JSON. Java's agent speaks
the same (`java/Agent.java`).
"""

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

OK = "ok"
LINGER_MS = 300
"""With it, what is sent at once goes in one batch."""


@dataclass(frozen=True)
class Record:
    """A record to send, as a word: `topic,key,value,size`, where `-` is a null key."""

    topic: str
    key: bytes | None
    value: bytes

    @classmethod
    def of(cls, word: str) -> "Record":
        """Return the record of a word; its value is filled up to its size by spaces."""
        topic, key, value, size = word.split(",")
        padded = value.encode().ljust(int(size))
        return cls(topic, None if key == "-" else key.encode(), padded)


@dataclass(frozen=True)
class Options:
    """What a scenario asks of a client; each agent says it in its client's words."""

    servers: str
    timeout_ms: int
    is_idempotent: bool
    transactional_id: str | None
    group: str | None
    reset: str
    isolation: str

    @classmethod
    def of(cls, words: Sequence[str]) -> "Options":
        """Return the options of words, each `name=value`."""
        given = dict(word.split("=", 1) for word in words)
        return cls(
            given["servers"],
            int(given["timeout_ms"]),
            given.get("idempotent", "true") == "true",
            given.get("transactional_id"),
            given.get("group"),
            given.get("reset", "earliest"),
            given.get("isolation", "read_uncommitted"),
        )


class Agent(ABC):
    """A client of one kind: at most one producer and one consumer of it.

    What fails raises the client's own errors; what a record comes to is told as `ok`, or as the
    error of its future or callback.
    """

    version: str

    @abstractmethod
    def describe(self, error: BaseException) -> str:
        """Return the name of an error, and what the client says of it that a program can ask."""

    @abstractmethod
    def producer(self, options: Options) -> Mapping[str, object]:
        """Make the producer; return its settings without its addresses."""

    @abstractmethod
    def send(self, records: Sequence[Record]) -> list[BaseException | None]:
        """Send records at once, and return what came of each."""

    @abstractmethod
    def init(self) -> None:
        """Initialise transactions."""

    @abstractmethod
    def begin(self) -> None:
        """Begin a transaction."""

    @abstractmethod
    def commit(self) -> None:
        """Commit the transaction."""

    @abstractmethod
    def abort(self) -> None:
        """Abort the transaction."""

    @abstractmethod
    def offsets(self, topic: str, offset: int) -> None:
        """Commit an offset of partition 0, of the consumer's group, with the transaction."""

    @abstractmethod
    def consumer(self, options: Options) -> Mapping[str, object]:
        """Make the consumer; return its settings without its addresses."""

    @abstractmethod
    def assign(self, topic: str, offset: int) -> None:
        """Have the consumer read partition 0 from an offset on."""

    @abstractmethod
    def subscribe(self, topic: str) -> None:
        """Have the consumer read as a member of its group."""

    @abstractmethod
    def poll(self, within_s: float) -> list[bytes]:
        """Return values that have come, at the latest when the time is over."""

    @abstractmethod
    def commit_positions(self) -> None:
        """Commit what was read."""


def name_of(error: BaseException) -> str:
    """Return the class of an error, and that of its cause where it is another."""
    own, cause = type(error).__name__, type(error.__cause__).__name__
    return own if error.__cause__ is None or cause == own else f"{own} ({cause})"


def words_of(error: BaseException) -> str:
    """Return the text of an error and of its causes."""
    cause = error.__cause__
    return f"{error}" + ("" if cause is None else f" {words_of(cause)}")


class Commands:
    """The commands of an agent, by name."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def run(self, name: str, arguments: Sequence[str]) -> dict[str, object]:
        """Return the answer to a command."""
        command: Callable[[Sequence[str]], dict[str, object]] = getattr(
            self, f"_{name}", self._call
        )
        try:
            return command([name, *arguments])
        except Exception as error:  # noqa: BLE001 - what it raises is what is measured
            return {"error": self._agent.describe(error), "words": [words_of(error)]}

    def _call(self, words: Sequence[str]) -> dict[str, object]:
        getattr(self._agent, words[0])()
        return {}

    def _about(self, _words: Sequence[str]) -> dict[str, object]:
        return {"version": self._agent.version}

    def _producer(self, words: Sequence[str]) -> dict[str, object]:
        return {"settings": self._agent.producer(Options.of(words[1:]))}

    def _consumer(self, words: Sequence[str]) -> dict[str, object]:
        return {"settings": self._agent.consumer(Options.of(words[1:]))}

    def _send(self, words: Sequence[str]) -> dict[str, object]:
        errors = self._agent.send([Record.of(word) for word in words[1:]])
        return {
            "told": [OK if error is None else self._agent.describe(error) for error in errors],
            "words": ["" if error is None else words_of(error) for error in errors],
        }

    def _offsets(self, words: Sequence[str]) -> dict[str, object]:
        self._agent.offsets(words[1], int(words[2]))
        return {}

    def _assign(self, words: Sequence[str]) -> dict[str, object]:
        self._agent.assign(words[1], int(words[2]))
        return {}

    def _subscribe(self, words: Sequence[str]) -> dict[str, object]:
        self._agent.subscribe(words[1])
        return {}

    def _poll(self, words: Sequence[str]) -> dict[str, object]:
        """Take one poll; who wants more asks again."""
        values = self._agent.poll(float(words[1]))
        return {"read": [value.decode().rstrip() for value in values]}


def serve(agent: Agent) -> None:
    """Take commands from standard input until it ends."""
    commands = Commands(agent)
    for line in sys.stdin:
        name, *arguments = line.rstrip("\n").split("\t")
        print(json.dumps(commands.run(name, arguments), default=str), flush=True)
