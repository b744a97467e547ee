"""Settings from a configuration as users of Java's client and of librdkafka have it.

Names have dots, values may be text. What is not known is refused, with the nearest name; what is
known and has no meaning here, or belongs to another client, is left out with a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, TypeVar

from ottla.client.errors import InvalidConfigurationError
from ottla.client.options.base import nearest_hint
from ottla.client.options.elsewhere import IGNORED, REFUSED, RENAMED
from ottla.client.options.settings import (
    AdminSettings,
    CommonSettings,
    ConsumerSettings,
    ProducerSettings,
)
from ottla.protocol.jaas import InvalidLoginError, login_module
from ottla.text import visible

__all__ = ["IgnoredOptionWarning", "options_from_config", "settings_from_config"]

_S = TypeVar("_S", bound=CommonSettings)

_CLIENTS: dict[str, type[CommonSettings]] = {
    "producers": ProducerSettings,
    "consumers": ConsumerSettings,
    "admin clients": AdminSettings,
}


class IgnoredOptionWarning(UserWarning):
    """An option of a configuration has no effect."""


def settings_from_config(client: type[_S], config: Mapping[str, Any]) -> _S:
    """Returns settings from dotted names; see `options_from_config`."""
    return client(**options_from_config(client, config))


def options_from_config(client: type[CommonSettings], config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns options by their names here, for who calls this on behalf of a user.

    Args:
        client: whose settings, such as `ProducerSettings`.
        config: values by dotted names, those of Java's client or of librdkafka.

    Raises:
        InvalidConfigurationError: an option is not known or cannot be kept, or has a value that it
            cannot have.
    """
    given: Any = config
    if not isinstance(given, Mapping):
        shown = visible(type(given).__name__)
        raise InvalidConfigurationError(
            f"the configuration is a {shown}; expected a dict of dotted names, such as "
            '{"bootstrap.servers": "kafka:9092"}'
        )
    found = _Translation(client)
    rest = {str(name): value for name, value in given.items()}
    for translate in _TRANSLATIONS:
        translate(found, rest)
    for name, value in rest.items():
        found.take(name, value)
    for ignored in found.ignored:
        warnings.warn(ignored, IgnoredOptionWarning, stacklevel=3)
    return found.values


class _Translation:
    """Values of options that were found under names of elsewhere."""

    def __init__(self, client: type[CommonSettings]) -> None:
        self.client = client
        self.values: dict[str, Any] = {}
        self.ignored: list[str] = []
        self._given_as: dict[str, str] = {}
        self._by_dots = {option.dotted: name for name, option in client.options.items()}

    def take(self, name: str, value: Any) -> None:
        """Takes what a configuration has under a name."""
        option = self._by_dots.get(name) or RENAMED.get(name, "")
        if option in self.client.options:
            self.set(option, _meant(option, value, name), name)
        elif name in REFUSED:
            if not _has_no_effect(name, value):
                raise InvalidConfigurationError(f"{name} cannot be kept: {REFUSED[name]}")
        elif name in IGNORED:
            self.ignored.append(f"{name} has no effect: {IGNORED[name]}")
        else:
            self._take_foreign(name, option)

    def set(self, option: str, value: Any, name: str) -> None:
        """Sets an option that was given under a name."""
        declared = self.client.options[option]
        is_text = isinstance(value, str)
        taken = declared.parse(value, name) if is_text else declared.convert(value, name)
        if option in self.values and self.values[option] != taken:
            other = self._given_as[option]
            raise InvalidConfigurationError(
                f"{name} and {other} are the same option, and differ; expected one of them"
            )
        self.values[option] = taken
        self._given_as[option] = name

    def _take_foreign(self, name: str, option: str) -> None:
        keyword = option or name.replace(".", "_")
        owners = [who for who, one in _CLIENTS.items() if keyword in one.options]
        if not owners or "_" in name:
            known = {*self._by_dots, *RENAMED, *REFUSED, *IGNORED}
            raise InvalidConfigurationError(
                f"{visible(name)} is no option{nearest_hint(name.replace('_', '.'), known)}"
            )
        self.ignored.append(f"{name} has no effect: it is an option of {' and '.join(owners)}")


def _has_no_effect(name: str, value: Any) -> bool:
    """Whether an option that cannot be kept was set to what happens without it."""
    usual = "true" if name == "enable.auto.offset.store" else "false"
    return value is None or str(value).strip().lower() in {usual, ""}


_RESETS = {
    "smallest": "earliest",
    "beginning": "earliest",
    "largest": "latest",
    "end": "latest",
    "error": "none",
}
_PARTITIONERS = {"murmur2_random": "default", "RoundRobinPartitioner": "round_robin"}
_ASSIGNORS = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "sticky",
    "CooperativeStickyAssignor": "cooperative-sticky",
}


def _meant(option: str, value: Any, name: str) -> Any:
    """Returns a value in the words of here."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if option == "auto_offset_reset":
        return _RESETS.get(text.lower(), text)
    if option == "partitioner":
        return _PARTITIONERS.get(text, text)
    if option == "partition_assignment_strategy":
        return [
            _ASSIGNORS.get(word.strip().rpartition(".")[2], word.strip())
            for word in text.split(",")
        ]
    if option == "ssl_endpoint_identification_algorithm" and text.lower() == "none":
        return ""
    if name == "compression.level" and text == "-1":
        return None
    return text


def _login(found: _Translation, rest: dict[str, Any]) -> None:
    text = rest.pop("sasl.jaas.config", None)
    if text is None:
        return
    try:
        module = login_module(str(text))
    except InvalidLoginError as error:
        raise InvalidConfigurationError(f"sasl.jaas.config: {error}") from None
    if module is None:
        return
    kind = module.name.rpartition(".")[2]
    if kind not in {"PlainLoginModule", "ScramLoginModule"}:
        what = REFUSED["sasl.login.class"] if kind.startswith("OAuth") else "it is not supported"
        raise InvalidConfigurationError(
            f"sasl.jaas.config has a {visible(kind)}; expected a PlainLoginModule or a "
            f"ScramLoginModule: {what}"
        )
    for name in ("username", "password"):
        if name in module.options:
            found.set(f"sasl_{name}", module.options[name], "sasl.jaas.config")


def _trust_store(found: _Translation, rest: dict[str, Any]) -> None:
    location = rest.pop("ssl.truststore.location", None)
    kind = str(rest.pop("ssl.truststore.type", "JKS"))
    rest.pop("ssl.truststore.password", None)
    if not location:
        return
    if kind.upper() != "PEM":
        raise InvalidConfigurationError(
            f"ssl.truststore.location is a key store of Java ({kind}), which cannot be read; write "
            "its certificates as PEM (keytool -list -rfc -keystore FILE > ca.pem), and give that "
            "file as ssl.ca.location"
        )
    found.set("ssl_ca_location", location, "ssl.truststore.location")


def _key_store(found: _Translation, rest: dict[str, Any]) -> None:
    location = rest.pop("ssl.keystore.location", None)
    kind = str(rest.pop("ssl.keystore.type", "JKS"))
    rest.pop("ssl.keystore.password", None)
    if not location:
        return
    if kind.upper() != "PEM":
        raise InvalidConfigurationError(
            f"ssl.keystore.location is a key store of Java ({kind}), which cannot be read; write "
            "it as PKCS12 (keytool -importkeystore -srckeystore FILE -destkeystore client.p12 "
            "-deststoretype PKCS12), then as PEM (openssl pkcs12 -in client.p12 -out client.pem), "
            "and give that file as ssl.certificate.location, with ssl.key.password"
        )
    found.set("ssl_certificate_location", location, "ssl.keystore.location")


_SERIALIZERS = ("key.serializer", "value.serializer", "key.deserializer", "value.deserializer")
_OF_BYTES = ("ByteArraySerializer", "ByteArrayDeserializer")


def _serializers(_found: _Translation, rest: dict[str, Any]) -> None:
    for name in _SERIALIZERS:
        value = rest.get(name)
        if not isinstance(value, str):
            continue
        if value.rpartition(".")[2] not in _OF_BYTES:
            function = "str.encode" if name.endswith(".serializer") else "bytes.decode"
            raise InvalidConfigurationError(
                f"{name} is a class of Java, {visible(value)}, which cannot be loaded; give a "
                f"function instead, such as {function}"
            )
        # Bytes are what there is without one.
        del rest[name]


def _levels(found: _Translation, rest: dict[str, Any]) -> None:
    """Takes the level of the codec there is; Java's clients have one a codec."""
    codec = str(rest.get("compression.type", rest.get("compression.codec"))).strip().lower()
    for one, usual in (("gzip", "-1"), ("lz4", ""), ("zstd", "")):
        name = f"compression.{one}.level"
        if name not in rest or "compression_level" not in found.client.options:
            continue
        level = rest.pop(name)
        if one != codec:
            found.ignored.append(f"{name} has no effect: compression.type is {visible(codec)}")
        elif str(level).strip() != usual:
            found.set("compression_level", level, name)


def _verification(_found: _Translation, rest: dict[str, Any]) -> None:
    name = "enable.ssl.certificate.verification"
    if str(rest.pop(name, "true")).strip().lower() != "true":
        raise InvalidConfigurationError(
            f"{name} cannot be kept: give an ssl.SSLContext that does not verify, as ssl.context, "
            "or better the authority, as ssl.ca.location"
        )


def _partitioner_class(found: _Translation, rest: dict[str, Any]) -> None:
    partitioner = rest.get("partitioner.class")
    if partitioner is None or "partitioner" not in found.client.options:
        return
    del rest["partitioner.class"]
    kind = str(partitioner).rpartition(".")[2]
    if kind not in _PARTITIONERS:
        raise InvalidConfigurationError(
            f"partitioner.class is a class of Java, {visible(kind)}, which cannot be loaded; give "
            "a function, as partitioner"
        )
    found.set("partitioner", _PARTITIONERS[kind], "partitioner.class")


def _memory(found: _Translation, rest: dict[str, Any]) -> None:
    """Takes librdkafka's bound of what waits, which is in KiB."""
    name = "queue.buffering.max.kbytes"
    if name not in rest or "buffer_memory" not in found.client.options:
        return
    text = str(rest.pop(name)).strip()
    if not (text.isascii() and text.isdecimal()):
        raise InvalidConfigurationError(f"{name} is {visible(text)!r}; expected an integer")
    found.set("buffer_memory", int(text) * 1024, name)


_TRANSLATIONS = (
    _login,
    _trust_store,
    _key_store,
    _serializers,
    _partitioner_class,
    _levels,
    _memory,
    _verification,
)
"""What takes more than one option, or another kind of value, to be an option here."""
