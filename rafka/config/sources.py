"""Where settings come from: flags, the environment, a file. All end as `Given`, key by key.

Environment names follow the rule of Kafka's images: `log.segment.bytes` is RAFKA_LOG_SEGMENT_BYTES,
`_` in a key is written `__`, and `-` is `___`. KAFKA_ works as well, with less weight, so that a
compose file made for Kafka can be used as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from .setting import ConfigError


@attrs.frozen
class Given:
    """A value as somebody wrote it, and where."""

    key: str
    value: object
    source: str


# Variables of these prefixes that are not settings: of Kafka's own scripts and clients, and the
# addresses that Kubernetes and Docker put in for a service that is called "kafka" or "rafka".
_NOT_SETTINGS: Final = re.compile(
    r"KAFKA_(OPTS|HOME|VERSION|HEAP_OPTS|JVM_PERFORMANCE_OPTS|GC_LOG_OPTS|DEBUG.*|LOG4J.*|JMX.*|CLASSPATH"
    r"|BOOTSTRAP_SERVERS?|BROKERS?|TOPICS?|CLUSTERS.*|REST.*|URL)"
    r"|RAFKA_(BOOTSTRAP|BOOTSTRAP_SERVERS?|BROKERS?|CONFIG|VERSION|HOME)"
    r"|[KR]AFKA_(SERVICE_(HOST|PORT\w*)|PORT|PORT_\d+_(TCP|UDP)\w*|NAME|ENV_\w+)"
)


def from_environ(environ: Mapping[str, str], prefix: str) -> Iterator[Given]:
    """The settings among the variables that begin with `prefix`."""
    for name in sorted(environ):
        if name.startswith(prefix) and not _NOT_SETTINGS.fullmatch(name):
            yield Given(key_of(name.removeprefix(prefix)), environ[name], name)


def from_compose_file(environ: Mapping[str, str]) -> Iterator[Given]:
    """What the KAFKA_ variables say, and the cluster id that Kafka's image takes without a prefix."""
    if "CLUSTER_ID" in environ and ("KAFKA_NODE_ID" in environ or "KAFKA_PROCESS_ROLES" in environ):
        yield Given("cluster.id", environ["CLUSTER_ID"], "CLUSTER_ID")
    yield from from_environ(environ, "KAFKA_")


def from_client_address(environ: Mapping[str, str]) -> Iterator[Given]:
    """RAFKA_KAFKA_CLIENT_HOST and RAFKA_KAFKA_CLIENT_PORT: the advertised address in two halves."""
    host = environ.get("RAFKA_KAFKA_CLIENT_HOST", "")
    port = environ.get("RAFKA_KAFKA_CLIENT_PORT", "")
    if host or port:
        names = " and ".join(
            n for n in ("RAFKA_KAFKA_CLIENT_HOST", "RAFKA_KAFKA_CLIENT_PORT") if environ.get(n)
        )
        host = f"[{host}]" if ":" in host and not host.startswith("[") else host
        yield Given("advertise", f"{host}:{port or 0}", names)


def from_file(path: str) -> Iterator[Given]:
    """A TOML file if its name ends so, else a properties file as Kafka has it."""
    try:
        with open(path, "rb") as file:
            raw = file.read()
        text = raw.decode()
    except OSError as error:
        raise ConfigError("-c", path, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError("-c", path, f"is not UTF-8 text: byte {error.start}") from None
    pairs = _toml(text, path) if path.endswith(".toml") else properties(text)
    for key, value in pairs:
        yield Given(key, value, path)


def env_name(key: str) -> str:
    """The environment variable of a setting."""
    return "RAFKA_" + key.replace("_", "__").replace("-", "___").replace(".", "_").upper()


def key_of(name: str) -> str:
    """The setting of an environment variable whose prefix is off."""
    name = name.replace("___", "-").replace("__", "\0").replace("_", ".")
    return name.replace("\0", "_").lower()


def properties(text: str) -> Iterator[tuple[str, str]]:
    """Keys and values of a Java properties file; where a key stands twice the last one counts."""
    lines = iter(text.splitlines())
    for line in lines:
        line = line.lstrip()
        if not line or line[0] in "#!":
            continue
        while _continues(line):
            line = line[:-1] + next(lines, "").lstrip()
        found = _PAIR.match(line)
        assert found, "the pattern matches every line"
        yield _unescape(found[1]), _unescape(found[2]).rstrip()


_PAIR: Final = re.compile(r"((?:\\.|[^\\=:\s])*)\s*[=:]?\s*(.*)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescape(text: str) -> str:
    def plain(found: re.Match[str]) -> str:
        what = found[1]
        return chr(int(what[1:], 16)) if len(what) == 5 else _ESCAPED.get(what, what)

    return _ESCAPE.sub(plain, text) if "\\" in text else text


def _toml(text: str, path: str) -> Iterator[tuple[str, object]]:
    import tomllib

    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        hint = ""
        if "overwrite" in str(error):  # storage and storage.reserve.bytes: a value and a table to TOML
            hint = '; where one key begins another, put both in quotes: "max.connections.per.ip" = 100'
        raise ConfigError("-c", path, f"is not TOML: {error}{hint}") from None
    return _flat(tables, "")


def _flat(table: Mapping[str, object], prefix: str) -> Iterator[tuple[str, object]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value
