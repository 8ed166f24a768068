"""Every declaration says what Kafka's own definition says, in every version."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from typing import Any, Final

import pytest

from rafka.wire import apis
from rafka.wire.api import Api
from rafka.wire.apis import APIS
from rafka.wire.schema import Field, Kind, Struct

from .kafka_messages import load, snake, versions
from .samples import MESSAGES, Message, message_id

OWN: Final = {"GroupHistory"}  # rafka's, which Kafka has no definition of
KAFKAS: Final = [message for message in MESSAGES if message.api.name not in OWN]

UNSTABLE: Final = {"InitProducerId": 6}  # in Kafka's definitions, but not served by its brokers

ZEROS: Final = {"string": "", "bytes": b"", "bool": False, "float64": 0.0, "uuid": bytes(16), "records": None}


@pytest.mark.parametrize("message", KAFKAS, ids=message_id)
def test_fields_are_those_of_kafka_in_every_version(message: Message) -> None:
    theirs = load(message.name)
    common = {each["name"]: each["fields"] for each in theirs.get("commonStructs", [])}
    for version in message.api.versions:
        assert our_fields(message.struct, version) == their_fields(theirs["fields"], common, version), version


@pytest.mark.parametrize("message", KAFKAS, ids=message_id)
def test_key_and_versions_are_those_of_kafka(message: Message) -> None:
    theirs = load(message.name)
    valid = [each for each in versions(theirs["validVersions"]) if each != UNSTABLE.get(message.api.name)]
    flexible = versions(theirs["flexibleVersions"])

    assert theirs["apiKey"] == message.api.key
    assert theirs["type"] == message.side
    assert list(message.api.versions) == valid
    assert [message.api.is_flexible(each) for each in valid] == [each in flexible for each in valid]


def test_own_apis_have_keys_that_kafka_will_not_come_to_use() -> None:
    own = {api.name: api.key for api in APIS.values() if api.key >= 10_000}
    assert set(own) == OWN


def test_only_produce_is_listed_with_versions_that_it_does_not_have() -> None:
    differing = {api.name: api.listed for api in APIS.values() if api.listed != api.versions}
    assert differing == {"Produce": range(14)}


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_each_file_opens_with_name_key_and_versions(api: Api) -> None:
    about = sys.modules[module_of(api)].__doc__ or ""
    first, last = api.versions[0], api.versions[-1]
    span = f"versions {first}-{last}" if first != last else f"version {first}"
    assert about.startswith(f"{api.name}, key {api.key}, {span}.\n")


def test_the_table_knows_each_api_by_its_key() -> None:
    assert {key: api.key for key, api in APIS.items()} == {key: key for key in APIS}
    assert len({api.name for api in APIS.values()}) == len(APIS)
    with pytest.raises(KeyError):
        APIS[4]


def test_no_file_of_an_api_is_missing_from_the_table() -> None:
    files = {module.name for module in pkgutil.iter_modules(apis.__path__)}

    assert {module_of(api).rpartition(".")[2] for api in APIS.values()} == files


def test_a_declaration_costs_nothing_until_it_is_used() -> None:
    """No API is imported before it is asked for, and none has classes or codecs made for it by that."""
    script = """
import sys
from rafka.wire import compile
from rafka.wire.apis import APIS
def loaded(): return sum(name.startswith("rafka.wire.apis.") for name in sys.modules)
assert loaded() == 0
apis = list(APIS.values())
assert loaded() == len(APIS)
assert not compile._DECODERS and not compile._ENCODERS
assert not any("Request" in vars(api) or "Response" in vars(api) for api in apis)
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def module_of(api: Api) -> str:
    return next(
        name
        for name, module in sys.modules.items()
        if name.startswith("rafka.wire.apis.") and api in vars(module).values()
    )


# --- both in one form ----------------------------------------------------------------


def our_fields(struct: Struct, version: int) -> list[tuple[Any, ...]]:
    return [our_field(field, version) for field in struct.fields if field.alive_in(version)]


def our_field(field: Field, version: int) -> tuple[Any, ...]:
    what: Any = field.type.name if isinstance(field.type, Kind) else our_fields(field.type, version)
    default = list(field.default) if isinstance(field.default, tuple) else field.default
    return field.name, what, field.array, field.nullable_in(version), field.tag, default


def their_fields(
    fields: list[dict[str, Any]], common: dict[str, list[dict[str, Any]]], version: int
) -> list[tuple[Any, ...]]:
    return [their_field(field, common, version) for field in fields if version in versions(field["versions"])]


def their_field(
    field: dict[str, Any], common: dict[str, list[dict[str, Any]]], version: int
) -> tuple[Any, ...]:
    kind: str = field["type"].removeprefix("[]")
    is_array = field["type"] != kind
    inner = field.get("fields") or common.get(kind)
    tag = field.get("tag")
    if tag is not None:
        assert version in versions(field["taggedVersions"])
    return (
        snake(field["name"]),
        their_fields(inner, common, version) if inner else kind,
        is_array,
        version in versions(field.get("nullableVersions", "none")),
        tag,
        their_default(field, kind, is_array, is_struct=bool(inner)),
    )


def their_default(field: dict[str, Any], kind: str, is_array: bool, is_struct: bool) -> Any:
    given = field.get("default")
    if given == "null" or (is_struct and not is_array):
        return None
    if is_array:
        return []
    if given is None:
        return ZEROS.get(kind, 0)
    if kind == "string":
        return given
    if kind == "bool":
        return str(given).lower() == "true"
    return int(str(given), 0)
