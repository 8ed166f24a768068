"""What a client may be told about itself, with defaults that suit most."""

from __future__ import annotations

import random
import ssl
from collections.abc import Awaitable, Callable

import attrs
import trio

from .address import Address
from .partitioner import Choice

Dial = Callable[[Address], Awaitable[trio.abc.Stream]]


@attrs.frozen(kw_only=True)
class Settings:
    """Times are in seconds."""

    client_id: str = "rafka"
    connect_timeout: float = 10.0  # for one address: TCP, TLS and handshake each
    request_timeout: float = 30.0  # for one answer
    retry_timeout: float = 30.0  # for one call, all its tries together
    retry_first: float = 0.05  # the first pause between tries; each next one is twice as long
    retry_most: float = 1.0
    unknown_topic_patience: float = 1.0  # a topic made a moment ago may not be known everywhere yet
    metadata_max_age: float = 300.0
    tls: ssl.SSLContext | None = None
    dial: Dial | None = None  # how to reach an address, in place of TCP
    choice: Choice = attrs.field(factory=random.Random)

    def pause(self, tries: int) -> float:
        """How long to wait after so many tries: doubling, with a fifth of it left to chance."""
        whole: float = min(self.retry_first * 2.0 ** min(tries, 30), self.retry_most)
        return whole * (0.8 + 0.4 * self.choice.randrange(1000) / 1000)

    async def reach(self, address: Address) -> trio.abc.Stream:
        """A stream to the address. Raises OSError or trio.TooSlowError."""
        with trio.fail_after(self.connect_timeout):
            if self.dial is not None:
                return await self.dial(address)
            stream = await trio.open_tcp_stream(address.host, address.port)
            if self.tls is None:
                return stream
            secure = trio.SSLStream(stream, self.tls, server_hostname=address.host, https_compatible=True)
            try:
                await secure.do_handshake()
            except trio.BrokenResourceError as error:
                raise OSError(f"the TLS handshake failed: {error.__cause__ or error}") from error
            except BaseException:
                await trio.aclose_forcefully(stream)
                raise
            return secure
