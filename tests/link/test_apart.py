"""Gateways and a broker put together as they are when each is a process: over a real socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from rafka.apart import RunningGateway, meeting_place, open_gateway
from rafka.config import MEMORY, Config, ConfigError, LinkAddress, Place
from rafka.link.hello import Welcome
from rafka.link.serving import LinkServer
from rafka.ops import cluster, txn
from rafka.ops.base import Envelope, Later, Op
from rafka.ops.features import Levels
from rafka.server import RunningBroker, open_broker
from rafka.wire.apis.metadata import METADATA

from ..gateway.kit import Client, ScriptedLink, request

BROKER = 4  # a resource type


def settings(address: LinkAddress, node_id: int = 0) -> Config:
    plain = Config()
    return attrs.evolve(
        plain,
        broker=attrs.evolve(plain.broker, node_id=node_id),
        storage=attrs.evolve(plain.storage, place=MEMORY),
        link=attrs.evolve(plain.link, address=address),
        network=attrs.evolve(plain.network, listen=()),
    )


@pytest.fixture
def link(tmp_path: Path) -> LinkAddress:
    return LinkAddress(path=str(tmp_path / "link"))


@asynccontextmanager
async def client_of(gateway: RunningGateway) -> AsyncIterator[Client]:
    ours, theirs = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(gateway.serve_stream, theirs)
        yield Client(ours)
        await ours.aclose()


async def until(true: Callable[[], bool]) -> None:
    with trio.fail_after(5):
        while not true():  # noqa: ASYNC110 (nobody but us wants to know)
            await trio.sleep(0.01)


async def metadata(gateway: RunningGateway) -> Any:
    async with client_of(gateway) as client:
        await client.send(request(METADATA, 9))
        return await client.reply(METADATA, 9)


async def test_clients_of_a_gateway_are_answered_by_the_broker(link: LinkAddress) -> None:
    async with (
        open_broker(settings(link, node_id=7), listen=False) as broker,
        open_gateway(settings(link), listen=False) as gateway,
    ):
        reply = await metadata(gateway)

    assert reply.cluster_id == broker.cluster_id
    assert [node.node_id for node in reply.brokers] == [7]
    assert gateway.config.broker.node_id == 7  # the broker's word counts
    assert broker.link_address == link


async def test_several_gateways_and_a_client_of_the_broker_itself(link: LinkAddress) -> None:
    config = settings(link)
    async with (
        open_broker(config, listen=False) as broker,
        open_gateway(config, listen=False) as one,
        open_gateway(config, listen=False) as other,
    ):
        replies = [await metadata(each) for each in (one, other, broker)]  # type: ignore[arg-type]

    assert {reply.cluster_id for reply in replies} == {broker.cluster_id}


async def ask_once(broker: RunningBroker, op: Op[Any]) -> Any:
    """Through a gateway of its own."""
    async with open_gateway(broker.config, listen=False) as gateway:
        answer = gateway.link.ask(Envelope(), op)
        assert isinstance(answer, Later)
        return await answer.wait()


async def test_settings_that_are_changed_on_the_broker_count_at_gateways(link: LinkAddress) -> None:
    change = cluster.ConfigChange(name="max.connections", config_operation=0, value="5")
    resource = cluster.ChangedResource(resource_type=BROKER, resource_name="0", configs=[change])
    op = cluster.IncrementalAlterConfigs(resources=[resource], validate_only=False)

    async with open_broker(settings(link), listen=False) as broker, early_and_late(broker, op) as gateways:
        found = [each._gateway._network.max_connections for each in gateways]

    assert found == [5, 5]


async def test_levels_of_features_are_told_by_gateways_as_they_are_at_the_broker(link: LinkAddress) -> None:
    update = txn.FeatureUpdate(feature="transaction.version", max_version_level=1, upgrade_type=2)
    op = txn.UpdateFeatures(feature_updates=[update])

    async with open_broker(settings(link), listen=False) as broker, early_and_late(broker, op) as gateways:
        levels = [broker._gateway.levels, *(each._gateway.levels for each in gateways)]

    assert dict(levels[0].of)["transaction.version"] == 1
    assert levels == [levels[0]] * 3


@asynccontextmanager
async def early_and_late(broker: RunningBroker, op: Op[Any]) -> AsyncIterator[list[RunningGateway]]:
    """A gateway from before the op, and one from after it; both have heard what there is to hear."""
    async with open_gateway(broker.config, listen=False) as early:
        await ask_once(broker, op)
        async with open_gateway(broker.config, listen=False) as late:
            for each in (early, late):
                await metadata(each)  # what was sent to them before is here now
            yield [early, late]


async def test_what_a_gateway_cannot_make_sense_of_is_passed_over(
    link: LinkAddress, caplog: pytest.LogCaptureFixture
) -> None:
    odd = {"feature:epoch": "x", "max.connections": "many"}
    welcome = Welcome(cluster_id="c1", node_id=0, settings=odd)
    with meeting_place(link) as place:
        server = LinkServer(ScriptedLink(), lambda: welcome, [place.listener])
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run)
            async with open_gateway(settings(link), listen=False) as gateway:
                found = gateway._gateway._network.max_connections, gateway._gateway.levels
            nursery.cancel_scope.cancel()

    assert found == (Config().network.max_connections, Levels())
    assert "what was changed on the broker is passed over" in caplog.text
    assert "the levels of features that the broker goes by are passed over" in caplog.text


async def test_a_gateway_needs_an_address(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a gateway needs its broker's address"):
        async with open_gateway(attrs.evolve(Config(), network=attrs.evolve(Config().network, listen=()))):
            pass


async def test_a_link_in_use_is_refused_before_any_data_is_touched(link: LinkAddress, tmp_path: Path) -> None:
    config = settings(link)
    second = attrs.evolve(config, storage=attrs.evolve(config.storage, place=Place(str(tmp_path / "data"))))
    async with open_broker(config, listen=False):
        with pytest.raises(ConfigError, match="another broker listens there"):
            async with open_broker(second, listen=False):
                pass

    assert not (tmp_path / "data").exists()


async def test_tcp_will_do_as_well() -> None:
    async with open_broker(settings(LinkAddress(host="127.0.0.1", port=0)), listen=False) as broker:
        address = broker.link_address
        assert address is not None
        assert address.port > 0
        async with open_gateway(settings(address), listen=False) as gateway:
            reply = await metadata(gateway)

    assert reply.cluster_id == broker.cluster_id


async def test_a_gateway_that_is_not_answered_yet_can_be_stopped(link: LinkAddress) -> None:
    with trio.move_on_after(0.2) as stopped:
        async with open_gateway(settings(link), listen=False):
            pass

    assert stopped.cancelled_caught


async def test_a_broker_that_comes_back_has_its_gateways_again(link: LinkAddress) -> None:
    config = settings(link)
    quick = attrs.evolve(config, link=attrs.evolve(config.link, backoff_ms=1, backoff_max_ms=5))
    async with trio.open_nursery() as nursery:

        async def serve(*, task_status: trio.TaskStatus[tuple[trio.Event, trio.Event]]) -> None:
            stop, stopped = trio.Event(), trio.Event()
            async with open_broker(config, listen=False):
                task_status.started((stop, stopped))
                await stop.wait()
            stopped.set()

        stop, stopped = await nursery.start(serve)
        async with open_gateway(quick, listen=False) as gateway, client_of(gateway) as client:
            stop.set()
            await stopped.wait()  # until then the link is in use
            await until(lambda: not gateway.link.connected)
            await client.send(request(METADATA, 9))
            without = await client.reply(METADATA, 9)
            stop, _ = await nursery.start(serve)
            await until(lambda: gateway.link.connected)
            await client.send(request(METADATA, 9))
            again = await client.reply(METADATA, 9)
        stop.set()

    assert (without.brokers, without.cluster_id) == ([], None)
    assert len(again.brokers) == 1
