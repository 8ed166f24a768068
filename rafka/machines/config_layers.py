"""What a broker falls back on where nothing is set: its settings, layer upon layer.

    set on this broker > set for all brokers > given at start (flag, environment, file) > default

A topic's `retention.ms` falls back on `log.retention.ms`, then `log.retention.minutes`, then
`log.retention.hours`, each looked for in all layers. Those chains are Kafka's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

import attrs

from ..ops.cluster import ConfigSynonym
from .config_values import Source

Texts = Mapping[str, str]


class BrokerSetting(Protocol):
    """A setting of the broker under Kafka's name, as `Config.shown()` tells it."""

    @property
    def name(self) -> str: ...
    @property
    def value(self) -> str | None: ...
    @property
    def default(self) -> str | None: ...
    @property
    def given(self) -> bool: ...
    @property
    def kind(self) -> int: ...
    @property
    def doc(self) -> str: ...
    @property
    def dynamic(self) -> bool: ...


# Settings that are one thing in several units: the first that is set counts.
CHAINS: Final[Sequence[tuple[str, ...]]] = (
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
)

_CHAIN_OF: Final = {name: chain for chain in CHAINS for name in chain}


def chain_of(name: str) -> tuple[str, ...]:
    return _CHAIN_OF.get(name, (name,))


@attrs.frozen(kw_only=True)
class Layers:
    """Texts by setting, the strongest layer first. What is not set is not in it."""

    dynamic: Texts = attrs.field(factory=dict)
    dynamic_default: Texts = attrs.field(factory=dict)
    static: Texts = attrs.field(factory=dict)
    default: Texts = attrs.field(factory=dict)

    @classmethod
    def of(cls, settings: Iterable[BrokerSetting], dynamic: Texts, dynamic_default: Texts) -> Layers:
        settings = list(settings)
        return cls(
            dynamic=dynamic,
            dynamic_default=dynamic_default,
            static={s.name: s.value for s in settings if s.given and s.value is not None},
            default={s.name: s.default for s in settings if s.default is not None},
        )

    def effective(self, name: str) -> str | None:
        """The value that counts, of this very name."""
        for texts, _ in self._down():
            if name in texts:
                return texts[name]
        return None

    def synonyms(self, name: str) -> list[ConfigSynonym]:
        """Every layer's value, the strongest first, and those of the names that stand in for it.

        As in Kafka, none is told until one of this very name is: with nothing but
        `log.retention.hours` set, `log.retention.ms` has no synonyms.
        """
        found = self._named(chain_of(name))
        start = next((at for at, synonym in enumerate(found) if synonym.name == name), len(found))
        return found[start:]

    def strongest(self, name: str) -> Source:
        """Where the effective value comes from, under whatever name."""
        found = self._named(chain_of(name))
        return Source(found[0].source) if found else Source.DEFAULT

    def _named(self, names: Sequence[str]) -> list[ConfigSynonym]:
        return [
            ConfigSynonym(name=name, value=texts[name], source=source)
            for texts, source in self._down()
            for name in names
            if name in texts
        ]

    def _down(self) -> Iterator[tuple[Texts, Source]]:
        yield self.dynamic, Source.DYNAMIC_BROKER
        yield self.dynamic_default, Source.DYNAMIC_DEFAULT_BROKER
        yield self.static, Source.STATIC_BROKER
        yield self.default, Source.DEFAULT
