"""Gateway and broker as processes of their own: what each has instead of the other.

    rafka broker     storage, actors, and where gateways attach        `meeting_place`, `link_server`
    rafka gateway    listeners and clients over a link to the broker   `open_gateway`

A gateway keeps nothing but its connections. Any number of them may serve one broker;
each tells its clients its own address, under the broker's node id. It begins to take
clients when it has reached its broker for the first time. While it has lost it they
are told to try again.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager

import attrs
import trio

from .broker.catalog_keeper import CatalogKeeper
from .broker.configs import ConfigKeeper
from .config import Config, ConfigError, LinkAddress
from .config.setting import settings_of
from .env import Env, real_env
from .gateway.listeners import Bound, bind_listeners, bootstrap, close_listeners
from .gateway.server import Gateway
from .link import Link
from .link.hello import Limits, Welcome
from .link.packed import PackedLink, Patience
from .link.plain import PlainListener
from .link.serving import LinkServer
from .link.sockets import LinkTaken, connect_tcp, connect_unix, listen_tcp, listen_unix
from .machines.catalog import Catalog
from .observe.spans import current_spans
from .ops.base import Envelope
from .ops.features import Levels

FEATURE = "feature:"  # before the name of a feature, among settings
log = logging.getLogger(__name__)

AROUND_A_REQUEST = 64 * 1024  # what a request may grow by on the link


# --- the broker's end -----------------------------------------------------------------------------


@attrs.frozen
class MeetingPlace:
    """Where gateways attach."""

    address: LinkAddress
    listener: PlainListener


@contextmanager
def meeting_place(address: LinkAddress) -> Iterator[MeetingPlace]:
    """Listen for gateways. ConfigError says why not."""
    try:
        with ExitStack() as held:
            if address.path is not None:
                listener = held.enter_context(listen_unix(address.path))
            else:
                listener, port = held.enter_context(listen_tcp(address.host, address.port))
                address = attrs.evolve(address, port=port)
            release = held.pop_all()
    except LinkTaken as why:
        raise ConfigError("link", str(address), str(why)) from None
    with release:
        yield MeetingPlace(address, listener)


def link_server(
    meeting: MeetingPlace, link: Link, catalog: Catalog, configs: ConfigKeeper, keeper: CatalogKeeper
) -> LinkServer:
    """Serves gateways, and keeps them told of what is changed on the broker."""
    config = configs.started_with

    def told() -> dict[str, str]:
        return _changed_settings(configs.current, catalog.features.published())

    def welcome() -> Welcome:
        return Welcome(
            cluster_id=catalog.cluster_id,
            node_id=config.broker.node_id,
            limits=Limits(
                ops=config.link.in_flight,
                bytes=config.link.in_flight_bytes,
                op_bytes=config.network.max_request_bytes + AROUND_A_REQUEST,
                group_op_bytes=config.link.group_op_bytes,
            ),
            settings=told(),
        )

    server = LinkServer(link, welcome, [meeting.listener], config.link.ping_interval_ms / 1000)
    configs.on_change.append(lambda _: server.tell(told()))
    keeper.on_features.append(lambda _: server.tell(told()))
    return server


def _changed_settings(config: Config, levels: Levels) -> dict[str, str]:
    """What was set on the broker while it runs. The levels of features travel along, by other names."""
    settings = {row.key: row.value for row in config.explain() if row.source == "dynamic"}
    features = {FEATURE + name: str(level) for name, level in (("epoch", levels.epoch), *levels.of)}
    return settings | features


# --- the gateway's end ----------------------------------------------------------------------------


@attrs.frozen
class RunningGateway:
    """A gateway that is serving."""

    config: Config
    link: PackedLink
    bound: list[Bound]
    _gateway: Gateway

    async def serve_stream(self, stream: trio.abc.Stream, envelope: Envelope | None = None) -> None:
        """Serve a client over any Trio stream, until it goes."""
        await self._gateway.serve_stream(stream, envelope)

    @property
    def bootstrap(self) -> str:
        """HOST:PORT of the first listener."""
        return bootstrap(self.bound)


@asynccontextmanager
async def open_gateway(
    config: Config, env: Env | None = None, *, listen: bool = True
) -> AsyncIterator[RunningGateway]:
    """Reach the broker at `config.link`, serve inside the block, and close in good order at its end."""
    env = env or real_env()
    bound = bind_listeners(config.network) if listen else []
    try:
        link = _link(config, env, bound)
        async with trio.open_nursery() as link_life:
            welcome: Welcome = await link_life.start(link.run)
            own = attrs.evolve(config, broker=attrs.evolve(config.broker, node_id=welcome.node_id))
            gateway = Gateway(_with_changes(own, link.settings), link, bound, current_spans())

            def learn(settings: Mapping[str, str]) -> None:
                gateway.reconfigure(_with_changes(own, settings))
                gateway.set_levels(_levels(settings))

            learn(link.settings)
            link.on_settings = learn
            async with trio.open_nursery() as edges:
                await edges.start(gateway.run)
                yield RunningGateway(own, link, bound, gateway)
                gateway.close()
                edges.cancel_scope.deadline = trio.current_time() + config.broker.shutdown_grace_ms / 2000
            link_life.cancel_scope.cancel()
    finally:
        close_listeners(bound)


def _link(config: Config, env: Env, bound: list[Bound]) -> PackedLink:
    address, told = config.link.address, config.link
    if address is None:
        raise ConfigError("link", None, "a gateway needs its broker's address: unix:PATH or tcp:HOST:PORT")

    async def connect() -> trio.abc.Stream:
        if address.path is not None:
            return await connect_unix(address.path)
        return await connect_tcp(address.host, address.port)

    return PackedLink(
        connect,
        to=str(address),
        name=bootstrap(bound) if bound else "without listeners",
        patience=Patience(
            first_s=told.backoff_ms / 1000,
            most_s=told.backoff_max_ms / 1000,
            ping_s=told.ping_interval_ms / 1000,
            chance=lambda: env.rng.getrandbits(16) / 65536,
        ),
    )


def _levels(settings: Mapping[str, str]) -> Levels:
    """The levels of features that the broker goes by. Those it does not tell of are as they are at first."""
    try:
        levels = {name: int(settings.get(FEATURE + name, level)) for name, level in Levels().of}
        return Levels(int(settings.get(FEATURE + "epoch", 0)), tuple(levels.items()))
    except ValueError as wrong:  # the broker is of another release
        log.warning("the levels of features that the broker goes by are passed over: %s", wrong)
        return Levels()


def _with_changes(config: Config, settings: Mapping[str, str]) -> Config:
    """What was changed on the broker while it runs counts for its gateways, where it is about connections."""
    mine = {about.key for _, about in settings_of(type(config.network))}
    try:
        return config.changed({key: value for key, value in settings.items() if key in mine})
    except ConfigError as wrong:  # the broker is of another release
        log.warning("what was changed on the broker is passed over: %s", wrong)
        return config
