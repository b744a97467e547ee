"""What a verdict depends on besides the bytes: options, configuration, and columns with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar

from ottla.records import TopicConfig
from ottla.records import validate as verdict_on
from ottla.spark.work.kind import require_pyspark
from ottla.spark.work.private import is_connect

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column, DataFrame

    from ottla.records import Verdict

# Options of `ottla.validate` that may differ between rows, and the Spark types they accept.
WHOLE_NUMBERS = ("tinyint", "smallint", "int", "bigint")
ROW_OPTIONS: dict[str, tuple[str, ...]] = {
    "now_ms": WHOLE_NUMBERS,
    "api_version": WHOLE_NUMBERS,
    "base_offset": WHOLE_NUMBERS,
    "leader_epoch": WHOLE_NUMBERS,
    "origin": ("string",),
    "transactional_id": ("string",),
}
# For these a string is a value; only a Column stands for a column.
TEXTS = ("origin", "transactional_id")
# For these a null in a column is a value, like None.
MAY_BE_NULL = ("api_version", "transactional_id")

NO_RECORDS = "nothing to judge: the record set is null"


def no_config(topic: str | None) -> str:
    """Returns why a record set of a topic is not judged."""
    return f"nothing was judged: there is no configuration for topic {topic!r}"


Config = TopicConfig | Mapping[str, TopicConfig] | None
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """Options of `ottla.validate`: each a value, the name of a column, or an expression."""

    now_ms: Any
    api_version: Any = 11
    base_offset: Any = 0
    leader_epoch: Any = 0
    origin: Any = "client"
    transactional_id: Any = None

    def by_name(self) -> dict[str, Any]:
        """Returns the options by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def split(self) -> tuple[dict[str, Any], dict[str, str]]:
        """Returns values and names of columns by option; expressions are among the values."""
        given = self.by_name()
        named = {name: value for name, value in given.items() if _is_name(name, value)}
        return {name: value for name, value in given.items() if name not in named}, named


@dataclass(frozen=True, slots=True)
class JudgeContext:
    """What a verdict depends on besides the bytes; `columns` are the columns of a row that have it.

    Columns are given by name for rows, and by index for Arrow.
    """

    records: Any
    config: TopicConfig | dict[str, TopicConfig] | None
    constants: Mapping[str, Any]
    columns: Mapping[str, Any]
    topic: Any
    profile: str
    kafka_version: str | None = None

    def check(self) -> None:
        """Raises ValueError or TypeError if no row could be judged."""
        for name, value in self.constants.items():
            _check_value(name, value)
        given = {
            "now_ms": 0,
            **self.constants,
            "profile": self.profile,
            "kafka_version": self.kafka_version,
        }
        configs = self.config.values() if isinstance(self.config, dict) else [self.config]
        for config in configs or [None]:
            verdict_on(b"", config, **given)

    def positions(self) -> list[Any]:
        """Returns the columns needed besides that of the record sets."""
        topic = [self.topic] if isinstance(self.config, dict) else []
        return [*self.columns.values(), *topic]

    def at_positions(self, positions: Mapping[Any, int]) -> JudgeContext:
        """Returns this context for columns at other positions."""
        columns = {name: positions[at] for name, at in self.columns.items()}
        topic = positions.get(self.topic)
        return replace(self, records=positions[self.records], columns=columns, topic=topic)

    def judge(self, records: Any, row: Callable[[Any], Any]) -> Verdict | str:
        """Returns the verdict on a record set, or why there is none; `row` returns a column."""
        return self._decide(verdict_on, records, row)

    def decide(
        self,
        decide: Callable[[Any, TopicConfig | None, dict[str, Any]], Result],
        records: Any,
        row: Callable[[Any], Any],
    ) -> Result | str:
        """Returns what a function decides on a record set by its options, or why nothing."""

        def by_options(records: Any, config: TopicConfig | None, **options: Any) -> Result:
            return decide(records, config, options)

        return self._decide(by_options, records, row)

    def _decide(
        self, decide: Callable[..., Result], records: Any, row: Callable[[Any], Any]
    ) -> Result | str:
        if records is None:
            return NO_RECORDS
        config = self.config
        if isinstance(config, dict):
            topic = row(self.topic)
            config = config.get(topic)
            if config is None:
                return no_config(topic)
        options = self.constants
        if self.columns:
            options = {**options, **{name: row(at) for name, at in self.columns.items()}}
            for name in self.columns:
                if options[name] is None and name not in MAY_BE_NULL:
                    return f"nothing was judged: {name} is null"
        try:
            return decide(
                records,
                config,
                profile=self.profile,
                kafka_version=self.kafka_version,
                **options,
            )
        except ValueError as error:
            return f"nothing was judged: {error}"


@dataclass(frozen=True, slots=True)
class SetsJob:
    """The arguments of a task that adds columns to rows with record sets."""

    context: JudgeContext
    kept: tuple[int, ...]
    """Indexes of the columns to keep."""
    names: tuple[str, ...]
    """Of all columns of the result."""


def prepare(
    df: DataFrame,
    column: str,
    config: Config,
    options: RequestOptions,
    rules: tuple[str, str | None],
    *,
    topic: str | Column,
) -> tuple[DataFrame, JudgeContext]:
    """Checks the arguments of a call against the columns of a frame.

    `rules` are the profile and the release. Returns the frame with an additional column for each
    option that is an expression.

    Raises:
        ValueError, TypeError: see `validate`.
    """
    require_pyspark()
    there = [(field.name, field.dataType.simpleString()) for field in df.schema.fields]
    records = _find(there, column, ("binary",), "column")
    wanted = options.by_name()
    checked = check_config(config)
    if isinstance(checked, dict):
        wanted["topic"] = topic
    added: list[Column] = []
    constants, columns = {}, {}
    for name, given in wanted.items():
        if is_column(given):
            columns[name] = len(there) + len(added)
            added.append(given.alias(f"__ottla_{name}"))
        elif name == "topic" or _is_name(name, given):
            columns[name] = _find(there, given, ROW_OPTIONS.get(name, ("string",)), name)
        else:
            constants[name] = given
    topic_at = columns.pop("topic", None)
    context = JudgeContext(records, checked, constants, columns, topic_at, *rules)
    context.check()
    if not added:
        return df, context
    frame = df.select("*", *added)
    made = frame.schema.fields[len(there) :]
    for field in made:
        name = field.name.removeprefix("__ottla_")
        _check_type(field.dataType.simpleString(), ROW_OPTIONS.get(name, ("string",)), name)
    return frame, context


def check_config(config: object) -> TopicConfig | dict[str, TopicConfig] | None:
    """Returns a configuration, or several by topic.

    Raises:
        TypeError: anything else.
    """
    if config is None or isinstance(config, TopicConfig):
        return config
    if isinstance(config, Mapping):
        for name, value in config.items():
            if not isinstance(name, str) or not isinstance(value, TopicConfig):
                raise TypeError(f"config of topic {name!r} must be a TopicConfig, not {value!r}")
        return dict(config)
    found = type(config).__name__
    raise TypeError(f"config must be a TopicConfig, or one per topic name, not {found}")


def _check_value(option: str, value: object) -> None:
    """Raises TypeError, with the option as it was given, for a value of another type."""
    if value is None and option in MAY_BE_NULL:
        return
    is_text = option in TEXTS
    if isinstance(value, str) if is_text else is_whole(value):
        return
    expected = "text or a Column" if is_text else "a whole number, the name of a column or a Column"
    raise TypeError(f"{option} is {value!r}, expected {expected}")


def is_whole(value: object) -> bool:
    """Whether a value is a whole number, also one of NumPy; True and False are none."""
    return isinstance(value, SupportsIndex) and not isinstance(value, bool)


def is_column(given: object) -> bool:
    """Whether an argument is a Spark expression."""
    from pyspark.sql import Column

    # In PySpark 3.5, columns of Spark Connect are of another class.
    return isinstance(given, Column) or is_connect(given)


def _is_name(option: str, given: object) -> bool:
    """Whether a string is the name of a column, rather than a value."""
    return isinstance(given, str) and option not in TEXTS


def _find(there: Sequence[tuple[str, str]], name: str, types: tuple[str, ...], what: str) -> int:
    """Returns the index of a column, checking its name and type."""
    if not isinstance(name, str):
        raise TypeError(f"{what} must be the name of a column, not {name!r}")
    names = [field for field, _ in there]
    if names.count(name) != 1:
        near = get_close_matches(name, names, 1)
        found = "twice" if name in names else "missing"
        hint = f"; did you mean {near[0]!r}?" if near and name not in names else ""
        raise ValueError(f"{what} {name!r} is {found} in the columns {names}{hint}")
    at = names.index(name)
    _check_type(there[at][1], types, f"{what} {name!r}")
    return at


def _check_type(found: str, types: tuple[str, ...], what: str) -> None:
    if found in types:
        return
    hint = "; convert it with unix_millis" if found.startswith("timestamp") else ""
    hint = "; unbase64 or unhex convert text to bytes" if types == ("binary",) else hint
    raise ValueError(f"{what} is of type {found}, expected {' or '.join(types)}{hint}")
