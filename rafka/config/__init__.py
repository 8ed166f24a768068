"""The settings of a broker: what they are, where each one came from, and what they add up to.

Precedence: flags > RAFKA_* > KAFKA_* > the file > defaults. `load` puts them together; a `Config`
made without arguments holds the defaults. Names are Kafka's wherever Kafka has one.

    config = load(flags=[("num.partitions", "3", "--set")], environ=os.environ, file="rafka.toml")
    config.topics.partitions            # 3
    config.source("num.partitions")     # "--set"

A key that nobody knows is an error that suggests the nearest one. A key that Kafka knows and
rafka has no use for is passed over with a warning: files made for Kafka are used as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs

from .links import LinkAddress
from .listeners import PLAINTEXT, Listener, match_advertised
from .places import MEMORY, Place
from .sections import (
    Broker,
    Cleaner,
    Fetch,
    Groups,
    Link,
    LogDefaults,
    Logging,
    Network,
    Producers,
    Storage,
    Topics,
    Transactions,
)
from .setting import ConfigError, Kind, Setting, as_text, settings_of

if TYPE_CHECKING:
    from .sources import Given

__all__ = [
    "MEMORY",
    "PLAINTEXT",
    "Config",
    "ConfigError",
    "Explained",
    "Kind",
    "LinkAddress",
    "Listener",
    "Place",
    "Setting",
    "Shown",
    "load",
    "match_advertised",
]

DEFAULT = "default"


class Explained(NamedTuple):
    """A row of `--print-config`."""

    key: str
    value: str
    source: str
    doc: str


class Shown(NamedTuple):
    """A setting as admin clients see it, under Kafka's name. `value` None is "not set"."""

    name: str
    value: str | None
    default: str | None
    given: bool  # by flag, environment or file
    kind: int
    doc: str
    dynamic: bool


@attrs.frozen(kw_only=True, eq=False)
class Config:
    broker: Broker = attrs.field(factory=Broker)
    network: Network = attrs.field(factory=Network)
    topics: Topics = attrs.field(factory=Topics)
    log: LogDefaults = attrs.field(factory=LogDefaults)
    cleaner: Cleaner = attrs.field(factory=Cleaner)
    producers: Producers = attrs.field(factory=Producers)
    fetch: Fetch = attrs.field(factory=Fetch)
    groups: Groups = attrs.field(factory=Groups)
    transactions: Transactions = attrs.field(factory=Transactions)
    storage: Storage = attrs.field(factory=Storage)
    link: Link = attrs.field(factory=Link)
    logging: Logging = attrs.field(factory=Logging)
    sources: Mapping[str, str] = attrs.field(factory=dict)  # of what is not by default
    warnings: tuple[str, ...] = ()  # to be said once, when there is a log to say it to

    def source(self, key: str) -> str:
        """Where the value of a setting came from."""
        return self.sources.get(key, DEFAULT)

    def explain(self) -> Iterator[Explained]:
        """Every setting with its value, where it came from, and what it is for."""
        for section, field, about in self._settings():
            value = getattr(section, field.name)
            text = "" if value is None else as_text(value)
            yield Explained(about.key, text, self.source(about.key), about.doc)

    def shown(self) -> Iterator[Shown]:
        """Every setting as DescribeConfigs of a broker tells it."""
        plain = {type(section): type(section)() for section, _, _ in self._settings()}
        for section, field, about in self._settings():
            value, default = (getattr(s, field.name) for s in (section, plain[type(section)]))
            if about.key == "advertise" and not value:
                value = default = self.network.listen  # what clients are told where nothing else is said
            row = Shown(
                about.kafka or about.key,
                _to_clients(value),
                _to_clients(default),
                about.key in self.sources,
                about.kind,
                about.doc,
                about.dynamic,
            )
            yield row
            if about.key == "node.id":  # older clients look for it under this name
                yield row._replace(name="broker.id")

    def changed(self, values: Mapping[str, object], source: str = "dynamic") -> Config:
        """This configuration with other values for some keys. Raises ConfigError."""
        from .sources import Given

        return _overlay(self, [Given(key, value, source) for key, value in values.items()])

    def _settings(self) -> Iterator[tuple[Any, attrs.Attribute[Any], Setting]]:
        for section in SECTIONS:
            part = getattr(self, section)
            for field, about in settings_of(type(part)):
                yield part, field, about


SECTIONS = (
    "broker",
    "network",
    "topics",
    "log",
    "cleaner",
    "producers",
    "fetch",
    "groups",
    "transactions",
    "storage",
    "link",
    "logging",
)


def load(
    *,
    flags: Sequence[tuple[str, str, str]] = (),
    environ: Mapping[str, str] | None = None,
    file: str | None = None,
) -> Config:
    """Put together what was set. `flags` are (key, value, name of the flag). Raises ConfigError."""
    environ = environ or {}
    if not flags and file is None and not any(n.startswith(("RAFKA_", "KAFKA_")) for n in environ):
        return Config()  # most brokers in tests: nothing was set, nothing is imported to read it

    from .sources import Given, from_client_address, from_compose_file, from_environ, from_file

    given: list[Given] = []  # the weakest first
    if file is not None:
        given += from_file(file)
    given += from_compose_file(environ)
    given += from_client_address(environ)
    given += (g for g in from_environ(environ, "RAFKA_") if not g.source.startswith("RAFKA_KAFKA_CLIENT_"))
    given += (Given(key, value, flag) for key, value, flag in flags)
    return _overlay(Config(), given)


def _overlay(config: Config, given: Iterable[Given]) -> Config:
    from .settle import settle

    return settle(config, given)


def _to_clients(value: object) -> str | None:
    """A value as Kafka's tools expect it: log.dirs is a path and no URL."""
    if isinstance(value, Place) and value.path is not None:
        return value.path
    return None if value is None else as_text(value)
