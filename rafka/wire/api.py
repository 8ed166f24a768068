"""One API: all that the wire knows of a request and its answer.

An `Api` is declared in `wire/apis/`, one file each. Its classes and codecs are made
when they are first asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Final

import attrs

from .classes import make_class
from .compile import decoder_of, encoder_of
from .decoding import ELEMENT_BUDGET, REPLY_BUDGET
from .schema import Struct, holds_records

API_VERSIONS_KEY: Final = 18

# `decode(data, at)` gives the object and where it ended; a third argument overrides the element budget.
Decoder = Callable[..., tuple[Any, int]]
# `encode(object, out)`, or `encode(object, out, splices)` where the message holds record batches.
Encoder = Callable[..., None]


@attrs.define(kw_only=True, eq=False, slots=False)
class Api:
    key: int
    name: str
    versions: range
    flexible: int | None  # the first flexible version
    request: Struct
    response: Struct
    listed: range = attrs.field()  # what ApiVersions says, where that is not what can be read

    @listed.default
    def _listed(self) -> range:
        return self.versions

    def is_flexible(self, version: int) -> bool:
        return self.flexible is not None and version >= self.flexible

    def response_header_flexible(self, version: int) -> bool:
        """Whether tagged fields follow the correlation id. Never in ApiVersions, which must be readable."""
        return self.key != API_VERSIONS_KEY and self.is_flexible(version)

    @cached_property
    def Request(self) -> type[Any]:
        return make_class(f"{self.name}Request", self.request)

    @cached_property
    def Response(self) -> type[Any]:
        return make_class(f"{self.name}Response", self.response)

    @cached_property
    def request_splices(self) -> bool:
        return holds_records(self.request)

    @cached_property
    def response_splices(self) -> bool:
        return holds_records(self.response)

    def request_decoder(self, version: int, cls: type[Any] | None = None) -> Decoder:
        title = self._title("request", version)
        flexible = self.is_flexible(version)
        return decoder_of(self.request, version, flexible, cls or self.Request, title, ELEMENT_BUDGET)

    def response_decoder(self, version: int, cls: type[Any] | None = None) -> Decoder:
        title = self._title("response", version)
        flexible = self.is_flexible(version)
        return decoder_of(self.response, version, flexible, cls or self.Response, title, REPLY_BUDGET)

    def request_encoder(self, version: int, cls: type[Any] | None = None) -> Encoder:
        title = self._title("request", version)
        return encoder_of(self.request, version, self.is_flexible(version), cls or self.Request, title)

    def response_encoder(self, version: int, cls: type[Any] | None = None) -> Encoder:
        title = self._title("response", version)
        return encoder_of(self.response, version, self.is_flexible(version), cls or self.Response, title)

    def _title(self, what: str, version: int) -> str:
        if version not in self.versions:
            raise ValueError(f"{self.name} has no version {version}")
        return f"{self.name} {what} v{version}"
