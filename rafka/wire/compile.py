"""Codecs, made when they are first asked for and kept for good.

A codec belongs to a struct, a version and a class. The source is written by `decoding`
and `encoding`; this is the shelf where the functions stand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .classes import Shape
from .decoding import decoder
from .encoding import encoder
from .schema import Struct

_DECODERS: dict[tuple[Struct, int, type[Any]], Callable[..., Any]] = {}
_ENCODERS: dict[tuple[Struct, int, type[Any]], Callable[..., None]] = {}


def decoder_of(
    struct: Struct, version: int, flexible: bool, cls: type[Any], title: str, budget: int
) -> Callable[..., Any]:
    key = (struct, version, cls)
    made = _DECODERS.get(key)
    if made is None:
        made = _DECODERS[key] = decoder(struct, Shape(cls), version, flexible, title, budget)
    return made


def encoder_of(
    struct: Struct, version: int, flexible: bool, cls: type[Any], title: str
) -> Callable[..., None]:
    key = (struct, version, cls)
    made = _ENCODERS.get(key)
    if made is None:
        made = _ENCODERS[key] = encoder(struct, Shape(cls), version, flexible, title)
    return made
