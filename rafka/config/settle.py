"""Lays what was given over a configuration: finds the fields, weighs, converts, checks.

The way of a value: its name is looked up among keys and aliases, the strongest source wins,
`structure` makes it a Python value, the section checks its bounds, and listeners are settled
together, because which of them are for clients is said in three settings.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from . import SECTIONS, Config
from .listeners import Listener, speaking_plaintext
from .setting import ConfigError, Setting, settings_of
from .sources import Given, env_name

Place = tuple[str, str, Setting]  # section, field, what it is


def settle(config: Config, given: Iterable[Given]) -> Config:
    """The configuration with `given`, whose last entries weigh most. Raises ConfigError."""
    chosen, strays = _sort_out(list(given))
    values: dict[str, dict[str, Any]] = {}
    if chosen:
        from .structure import structured

        for (section, field), one in chosen.items():
            kind = type(getattr(config, section))
            values.setdefault(section, {})[field] = structured(one, kind, field)

    sources = {**config.sources, **{_about(config, at).key: one.source for at, one in chosen.items()}}
    warnings = [*config.warnings, *_warnings(strays)]
    if "network" in values:
        warnings += _settle_listeners(config, values["network"], chosen, sources)
    parts = {name: _made(getattr(config, name), new, sources) for name, new in values.items()}
    return attrs.evolve(config, **parts, sources=sources, warnings=tuple(warnings))


def _sort_out(given: list[Given]) -> tuple[dict[tuple[str, str], Given], list[Given]]:
    """The strongest value for each field, and what is no setting of ours. Unknown keys raise."""
    ours = places()
    chosen: dict[tuple[str, str], Given] = {}
    strays: list[Given] = []
    for one in given:
        place = ours.get(one.key)
        if place is None or (one.source.startswith("KAFKA_") and not _kafkas(one.key)):
            strays.append(one)
            continue
        section, field, about = place
        at = (section, field)
        before = chosen.get(at)
        if before is not None and before.source == one.source and before.key == about.key != one.key:
            continue  # one file names it twice: our own name weighs more than Kafka's
        chosen[at] = one
    for one in strays:
        _refuse_unknown(one, ours)
    return chosen, strays


def places() -> dict[str, Place]:
    """Every name of every setting, and the field it stands for."""
    found: dict[str, Place] = {}
    plain = Config()
    for section in SECTIONS:
        for field, about in settings_of(type(getattr(plain, section))):
            for name in about.names:
                found[name] = (section, field.name, about)
    return found


def _about(config: Config, at: tuple[str, str]) -> Setting:
    section, field = at
    about: Setting = getattr(attrs.fields(type(getattr(config, section))), field).metadata["setting"]
    return about


def _kafkas(key: str) -> bool:
    from .kafka_names import known_to_kafka

    return known_to_kafka(key) or key == "cluster.id"


def _refuse_unknown(one: Given, ours: dict[str, Place]) -> None:
    """A mistyped key must not pass for a setting at work. KAFKA_ variables may be another program's."""
    from .kafka_names import REFUSED, known_to_kafka

    if one.key in REFUSED and one.value:
        raise ConfigError(one.key, one.value, f"{REFUSED[one.key]}; take it out to go on", one.source)
    if known_to_kafka(one.key) or one.source.startswith("KAFKA_"):
        return
    from difflib import get_close_matches

    near = get_close_matches(one.key, ours, n=1)
    if one.source.startswith("RAFKA_"):
        known = f"; did you mean {env_name(near[0])}?" if near else ""
    else:
        known = f"; did you mean {near[0]}?" if near else "; `rafka serve --print-config` lists them all"
    raise ConfigError(one.key, None, f"there is no such setting{known}", one.source)


def _warnings(strays: list[Given]) -> list[str]:
    from .kafka_names import known_to_kafka

    known = sorted({one.key for one in strays if known_to_kafka(one.key)})
    unknown = sorted({one.source for one in strays if not known_to_kafka(one.key)})
    told = []
    if known:
        told.append(f"passed over, for rafka has no use for these settings of Kafka's: {', '.join(known)}")
    if unknown:
        told.append(f"passed over, for these variables name no setting: {', '.join(unknown)}")
    return told


def _settle_listeners(
    config: Config,
    network: dict[str, Any],
    chosen: dict[tuple[str, str], Given],
    sources: dict[str, str],
) -> list[str]:
    """Keep what is for clients, in `network`; tell what was passed over."""
    protocols = network.get("protocols", config.network.protocols)
    controllers = network.get("controller_names", config.network.controller_names)
    told: list[str] = []
    for field in ("listen", "advertise"):
        if field in network:
            one = chosen["network", field]
            try:
                kept, dropped = speaking_plaintext(network[field], protocols, controllers, key=one.key)
            except ConfigError as error:
                raise error.found_in(one.source) from None
            network[field] = kept
            told += [
                f"passed over, for rafka has no separate controllers: {one.key} {text}" for text in dropped
            ]
    if "listen" in network and not network["listen"]:
        one = chosen["network", "listen"]
        raise ConfigError(one.key, one.value, "none of them is for clients: give HOST:PORT", one.source)
    if "listen" not in network and network.get("advertise") and "listen" not in sources:
        one = chosen["network", "advertise"]
        if one.key == "advertised.listeners":  # as Kafka's image does: whoever advertises wants to be reached
            network["listen"] = tuple(Listener("0.0.0.0", a.port, a.name) for a in network["advertise"])
            sources["listen"] = one.source
    return told


def _made(section: Any, values: dict[str, Any], sources: dict[str, str]) -> Any:
    try:
        return attrs.evolve(section, **values)
    except ConfigError as error:
        raise error.found_in(sources.get(error.key, "default")) from None
