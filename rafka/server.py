"""A broker put together and run: the one place that knows every room.

    storage         flusher
    └─ actors       catalog keeper, coordinator of groups, housekeeper, snapshots
       └─ edges     gateway: listeners, and a task for each client; gateways that are processes of their own

Closing goes inside out: clients are answered and let go first, then the actors end,
then the logs are flushed and marked as cleanly closed. If something inside fails, nothing
is flushed any more: what was acknowledged is durable, and the next start recovers it.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs
import trio

from .broker.broker import Broker
from .broker.catalog_keeper import CatalogKeeper
from .broker.configs import ConfigKeeper
from .broker.coordinator import Coordinator
from .broker.describe import Describer
from .broker.fetch import Fetcher
from .broker.group_requests import GroupRequests
from .broker.housekeeper import Housekeeper
from .broker.offsets import Offsets
from .broker.produce import Writer
from .broker.producer_ids import ProducerIds
from .broker.snapshots import Snapshots
from .broker.topics import Topics
from .broker.txn_coordinator import TxnCoordinator
from .broker.txn_requests import TxnRequests
from .config import Config, ConfigError, LinkAddress
from .env import Env, real_env
from .gateway.listeners import Bound, bind_listeners, bootstrap, close_listeners
from .gateway.server import Gateway
from .link import Link
from .machines.catalog import CATALOG_FACTS, Catalog, CatalogFact, ClusterCreated
from .machines.facts import FactRegistry
from .machines.fetch_sessions import FetchSessions
from .machines.groups.directory import Groups
from .machines.groups.facts import GROUP_FACTS
from .machines.groups.offset_facts import OFFSET_FACTS
from .machines.topic_admin import TopicAdmin, TopicRules
from .machines.transactions.facts import TRANSACTION_FACTS
from .observe.names import BROKER
from .observe.spans import Spans, current_spans
from .ops.base import Envelope
from .storage.backend import LogBackend, LogName
from .storage.journal import JOURNAL, Journal, open_journal
from .types import TopicId

if TYPE_CHECKING:
    from .apart import MeetingPlace
    from .link.serving import LinkServer

NEVER_BY_BYTES: Final = 1 << 62
PARKED_MAX_S: Final = 60.0  # a fetch waits no longer than this, whatever its client says


@attrs.frozen
class RunningBroker:
    """A broker that is serving. `bound` is empty where it was opened without listeners."""

    config: Config
    link: Broker
    bound: list[Bound]
    cluster_id: str
    _gateway: Gateway
    link_address: LinkAddress | None = None  # where gateways of their own reach it, with the true port

    async def serve_stream(self, stream: trio.abc.Stream, envelope: Envelope | None = None) -> None:
        """Serve a client over any Trio stream, until it goes."""
        await self._gateway.serve_stream(stream, envelope)

    @property
    def bootstrap(self) -> str:
        """HOST:PORT of the first listener."""
        return bootstrap(self.bound)


@asynccontextmanager
async def open_broker(
    config: Config | None = None, env: Env | None = None, *, listen: bool = True
) -> AsyncIterator[RunningBroker]:
    """Recover what is stored, serve inside the block, and close in good order at its end.

    Where the block is left by an error, or cancelled, all is left as it lies: the next start recovers it.
    """
    config = config or Config()
    env = env or real_env()
    with ExitStack() as taken:
        bound = bind_listeners(config.network) if listen else []
        taken.callback(close_listeners, bound)
        meeting = None
        if config.link.address is not None:
            from .apart import meeting_place

            meeting = taken.enter_context(meeting_place(config.link.address))
        backend = make_backend(config, env)
        taken.callback(backend.abandon)  # also where something fails, or the block is left by an error
        names = await backend.start()
        async with trio.open_nursery() as storage:
            await storage.start(backend.run)
            assembly = await _assemble(config, env, backend, names)
            async with trio.open_nursery() as actors:
                for run in assembly.actors:
                    await actors.start(run)
                gateway = Gateway(assembly.configs.current, assembly.link, bound, assembly.spans)
                assembly.configs.on_change.append(gateway.reconfigure)
                gateway.set_levels(assembly.topics.catalog.features.published())
                assembly.keeper.on_features.append(gateway.set_levels)
                async with trio.open_nursery() as edges:
                    await edges.start(gateway.run)
                    gateways = await _serve_gateways(meeting, assembly, edges) if meeting else None
                    yield RunningBroker(
                        config,
                        assembly.broker,
                        bound,
                        assembly.topics.catalog.cluster_id,
                        gateway,
                        meeting.address if meeting else None,
                    )
                    gateway.close()
                    if gateways is not None:
                        gateways.close()
                    assembly.broker.close()
                    edges.cancel_scope.deadline = trio.current_time() + config.broker.shutdown_grace_ms / 2000
                actors.cancel_scope.cancel()
            storage.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            await backend.close()


async def _serve_gateways(meeting: MeetingPlace, assembly: _Assembly, edges: trio.Nursery) -> LinkServer:
    """Take ops from gateways that are processes of their own."""
    from .apart import link_server

    server = link_server(meeting, assembly.link, assembly.topics.catalog, assembly.configs, assembly.keeper)
    await edges.start(server.run)
    return server


def make_backend(config: Config, env: Env) -> LogBackend:
    """The storage that the configuration names."""
    place = config.storage.place
    if place.path is None:
        from .storage.memory import MemoryBackend

        return MemoryBackend(env)
    from .storage.embedded import EmbeddedBackend, EmbeddedConfig

    durable = config.storage.durability == "fsync"
    return EmbeddedBackend(
        env,
        place.path,
        EmbeddedConfig(
            durable=durable,
            reserve_bytes=config.storage.reserve_bytes,
            max_open_files=config.storage.open_files,
            checkpoint_interval=config.storage.checkpoint_interval_ms / 1000,
            # A checkpoint syncs. Where the page cache will do, nobody should pay for that more often
            # than the interval says: what was not synced is checked after a crash, at gigabytes a second.
            checkpoint_bytes=config.storage.checkpoint_bytes if durable else NEVER_BY_BYTES,
        ),
    )


Actor: TypeAlias = Callable[..., Awaitable[object]]


@attrs.frozen
class _Assembly:
    broker: Broker
    link: Link  # what gateways ask: the broker, with spans around it where somebody traces
    spans: Spans | None
    topics: Topics
    configs: ConfigKeeper
    keeper: CatalogKeeper
    coordinator: Coordinator
    actors: Sequence[Actor]  # the outermost first


async def _assemble(config: Config, env: Env, backend: LogBackend, names: list[LogName]) -> _Assembly:
    """Everything between storage and gateway, with the state that was left."""
    facts = FactRegistry((*CATALOG_FACTS, *GROUP_FACTS, *OFFSET_FACTS, *TRANSACTION_FACTS))
    journal = await open_journal(backend, facts, env)
    snapshots = Snapshots(journal)
    catalog = Catalog()
    configs = ConfigKeeper(config, catalog)
    topics = Topics(backend, configs, config.storage.record_validation == "full")
    coordinator = Coordinator(config, env, journal, topics.catalog.by_id.__contains__)
    configs.on_change.append(coordinator.reconfigure)
    producer_ids = ProducerIds(env.rng)
    transactions = TxnCoordinator(config, env, journal, topics, coordinator, producer_ids.new)
    configs.on_change.append(transactions.reconfigure)
    await _replay(journal, catalog, coordinator.groups, transactions, topics, configs, env)
    snapshots.sources += (catalog.facts, coordinator.groups.facts, transactions.facts)
    housekeeper = Housekeeper(configs, topics, backend, env)
    housekeeper.discard(_open_logs(topics, names))
    admin = TopicAdmin(catalog, _topic_rules(config, configs, env))
    keeper = CatalogKeeper(
        catalog, topics, admin, configs, journal, housekeeper.discard, coordinator.forget_topic
    )
    sessions = FetchSessions(config.fetch.session_slots, lambda: env.rng.getrandbits(31))
    txn_requests = TxnRequests(
        transactions, producer_ids, coordinator, topics, lambda: configs.current, env.now
    )
    writer = Writer(topics, env.now)
    writer.gate = txn_requests
    broker = Broker(
        writer=writer,
        fetcher=Fetcher(
            topics,
            sessions,
            node_id=config.broker.node_id,
            max_bytes=config.fetch.max_bytes,
            max_wait_s=PARKED_MAX_S,
        ),
        offsets=Offsets(config, topics, backend),
        describer=Describer(config, topics, keeper, backend),
        configs=configs,
        keeper=keeper,
        coordinator=coordinator,
        group_requests=GroupRequests(topics, coordinator),
        transactions=transactions,
        txn_requests=txn_requests,
    )
    spans = current_spans()
    link: Link = broker
    if spans is not None:
        link = spans.around(broker, BROKER)
        coordinator.on_rebalance.append(spans.rebalance_complete)
    actors = (keeper.run, coordinator.run, transactions.run, housekeeper.run, snapshots.run)
    return _Assembly(broker, link, spans, topics, configs, keeper, coordinator, actors)


async def _replay(
    journal: Journal,
    catalog: Catalog,
    groups: Groups[Any],
    transactions: TxnCoordinator,
    topics: Topics,
    configs: ConfigKeeper,
    env: Env,
) -> None:
    """Take up what the journal tells; in an empty one the cluster begins."""
    for fact in journal.replay():
        if isinstance(fact, CATALOG_FACTS):
            catalog.apply(fact)
        elif isinstance(fact, TRANSACTION_FACTS):
            transactions.apply(fact)
        else:
            groups.apply(fact)
    wanted = configs.started_with.broker.cluster_id
    if catalog.cluster_id:
        if wanted not in (None, catalog.cluster_id):
            raise ConfigError(
                "cluster.id", wanted, f"the data directory belongs to the cluster {catalog.cluster_id}"
            )
    else:
        cluster_id = wanted or base64.urlsafe_b64encode(env.rng.randbytes(16)).decode().rstrip("=")
        birth: list[CatalogFact] = [ClusterCreated(cluster_id=cluster_id), configs.born()]
        await journal.append(birth)
        for fact in birth:
            catalog.apply(fact)
    for fact in catalog.facts():
        topics.publish(fact)


def _open_logs(topics: Topics, names: list[LogName]) -> list[LogName]:
    """Open the logs that have something in them. Those that belong to no topic are given back."""
    ownerless = set(names) - {JOURNAL}
    for live in topics:
        for index, name in enumerate(live.log_names()):
            if name in ownerless:
                ownerless.discard(name)
                live.partition(index)
    return sorted(ownerless)


def _topic_rules(config: Config, configs: ConfigKeeper, env: Env) -> TopicRules:
    def new_id() -> TopicId:
        """A ULID: sorted by time in its text form, and a UUID like any other to clients."""
        return TopicId(int(env.now() * 1000).to_bytes(6, "big") + env.rng.randbytes(10))

    return TopicRules(
        node_id=config.broker.node_id,
        default_partitions=config.topics.partitions,
        default_replication=config.topics.replication_factor,
        deletable=config.topics.deletable,
        check_configs=configs.check_topic,
        describe_configs=configs.describe_created,
        new_id=new_id,
    )
