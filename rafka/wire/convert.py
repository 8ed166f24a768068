"""The codecs as hooks of a cattrs converter.

A converter belongs to a version, since the same class has other bytes in another one:

    converter = wire_converter(4, [Bound(HEARTBEAT, ops.Heartbeat, ops.HeartbeatReply)])
    op = converter.structure(frame, ops.Heartbeat)
    body = converter.unstructure(ops.HeartbeatReply())

Hooks are made when they are first used. A body with record batches is joined here;
who would send them uncopied takes `Api.response_encoder` and its splices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs
import cattrs

from ..types import Buffer
from .api import Api, Decoder, Encoder
from .frame import pieces


@attrs.frozen
class Bound:
    """An API and the classes that stand for its messages."""

    api: Api
    request: type[Any] | None = None
    response: type[Any] | None = None


def wire_converter(version: int, bound: Iterable[Bound]) -> cattrs.Converter:
    """Structures buffers into the bound classes, and unstructures their objects into bytes."""
    decoders: dict[type[Any], Callable[[], Decoder]] = {}
    encoders: dict[type[Any], Callable[[], tuple[Encoder, bool]]] = {}
    for each in bound:
        _bind(each, version, decoders, encoders)
    converter = cattrs.Converter(detailed_validation=False)
    converter.register_structure_hook_factory(
        lambda cls: cls in decoders, lambda cls: _structure_hook(decoders[cls]())
    )
    converter.register_unstructure_hook_factory(
        lambda cls: cls in encoders, lambda cls: _unstructure_hook(*encoders[cls]())
    )
    return converter


def _bind(
    bound: Bound,
    version: int,
    decoders: dict[type[Any], Callable[[], Decoder]],
    encoders: dict[type[Any], Callable[[], tuple[Encoder, bool]]],
) -> None:
    api, request, response = bound.api, bound.request, bound.response
    if request is not None:
        decoders[request] = lambda: api.request_decoder(version, request)
        encoders[request] = lambda: (api.request_encoder(version, request), api.request_splices)
    if response is not None:
        decoders[response] = lambda: api.response_decoder(version, response)
        encoders[response] = lambda: (api.response_encoder(version, response), api.response_splices)


def _structure_hook(decode: Decoder) -> Callable[[Buffer, type[Any]], Any]:
    def structure(data: Buffer, _: type[Any]) -> Any:
        return decode(data, 0)[0]

    return structure


def _unstructure_hook(encode: Encoder, splices: bool) -> Callable[[Any], bytes]:
    def unstructure(value: Any) -> bytes:
        out = bytearray()
        if not splices:
            encode(value, out)
            return bytes(out)
        found: list[tuple[int, Buffer]] = []
        encode(value, out, found)
        return b"".join(pieces(out, found))

    return unstructure
