"""The same bytes as kafka-python's codec, which others wrote from Kafka's definitions."""

from __future__ import annotations

import importlib
import pkgutil
from random import Random
from typing import Any, Final
from uuid import UUID

import pytest

from rafka.wire.classes import camel_case
from rafka.wire.schema import UUID as UUID_KIND
from rafka.wire.schema import Field, Struct

from .samples import EVERY_VERSION, Message, message_id

kafka = pytest.importorskip("kafka")
if int(kafka.__version__.split(".")[0]) < 3:
    pytest.skip("kafka-python before 3 has another codec, without most versions", allow_module_level=True)

SAMPLES: Final = 3


def their_classes() -> dict[str, Any]:
    from kafka import protocol
    from kafka.protocol.api_message import ApiMessage

    found: dict[str, Any] = {}
    for module in pkgutil.walk_packages(protocol.__path__, "kafka.protocol."):
        if ".old" not in module.name and "generate_stubs" not in module.name:
            for value in vars(importlib.import_module(module.name)).values():
                if isinstance(value, type) and issubclass(value, ApiMessage) and value is not ApiMessage:
                    found[value.__name__] = value
    return found


THEIRS: Final = their_classes()


@pytest.mark.parametrize(("message", "version"), EVERY_VERSION, ids=message_id)
def test_bytes_are_the_same_both_ways(message: Message, version: int) -> None:
    cls = THEIRS.get(message.name)
    if cls is None or not cls.min_version <= version <= cls.max_version:
        pytest.skip(f"kafka-python {kafka.__version__} has no {message.name} v{version}")
    random = Random(version)
    for _ in range(SAMPLES):
        value = message.sample(random, version)
        if message.name == "ApiVersionsResponse":
            value.error_code = 0  # with an error kafka-python reads v0, whatever the version
        ours = message.encode(value, version)
        theirs = bytes(as_theirs(value, message.struct, cls, version).encode(version=version))

        assert ours == theirs
        assert message.decoder(version)(theirs, 0) == (value, len(theirs))
        found = cls.decode(ours, version=version)
        assert as_ours(found, message.struct, message.cls, cls, version) == value


def as_theirs(value: Any, struct: Struct, cls: Any, version: int) -> Any:
    """The same message as an object of kafka-python's."""
    values = {
        their_name(field, cls): their_value(getattr(value, field.name), field, cls, version)
        for field in struct.fields
        if field.alive_in(version) and not (field.tag is not None and getattr(value, field.name) is None)
    }
    return cls(**values)


def their_value(value: Any, field: Field, cls: Any, version: int) -> Any:
    if value is None:
        return None
    if isinstance(field.type, Struct):
        inner = cls._struct.fields[field.name].data_class
        if field.array:
            return [as_theirs(each, field.type, inner, version) for each in value]
        return as_theirs(value, field.type, inner, version)
    if field.type is UUID_KIND:
        return [UUID(bytes=each) for each in value] if field.array else UUID(bytes=value)
    if is_bit_set(field, cls):
        return {bit for bit in range(32) if value >> bit & 1}
    return value


def as_ours(value: Any, struct: Struct, cls: Any, theirs: Any, version: int) -> Any:
    """An object of kafka-python's as one of ours. What did not travel under a tag is not there."""
    values = {
        field.name: our_value(getattr(value, their_name(field, theirs)), field, cls, theirs, version)
        for field in struct.fields
        if field.alive_in(version) and not (field.tag is not None and field.name not in (value.tags or ()))
    }
    return cls(**values)


def our_value(value: Any, field: Field, cls: Any, theirs: Any, version: int) -> Any:
    if isinstance(field.type, Struct) and value is not None:
        inner = getattr(cls, camel_case(field.name))
        their_inner = theirs._struct.fields[field.name].data_class
        if field.array:
            return [as_ours(each, field.type, inner, their_inner, version) for each in value]
        return as_ours(value, field.type, inner, their_inner, version)
    if field.type is UUID_KIND:
        return bytes(16) if value is None else value.bytes
    if is_bit_set(field, theirs):
        bits = sum(1 << bit for bit in ({31} if value is None else value))
        return bits - (bits >> 31 << 32)
    return value


def their_name(field: Field, cls: Any) -> str:
    return field.name if field.name in cls._struct.fields else "authorized_operations"


def is_bit_set(field: Field, cls: Any) -> bool:
    """kafka-python makes sets of some numbers."""
    from kafka.protocol.schemas.fields.codecs import BitField

    return getattr(cls._struct.fields[their_name(field, cls)], "_type", None) is BitField
