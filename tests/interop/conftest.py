"""The broker under test, and the clients: what every interop test is given.

One broker serves the session; a test that restarts or kills asks for `own_broker`. Which
clients there are depends on what is installed, and pytest's summary names those that are not.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import os
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.brokers import EXTERNAL, Broker, ExternalBroker, Rafka, RafkaProcess

from .vocabulary import CannotAsk, Client

HERE: Final = Path(__file__).parent
MODULES: Final = {"kafka": "kafka_python", "confluent_kafka": "confluent", "aiokafka": "aio"}
# A matrix over the versions of one library need not play the others again in every corner.
CHOSEN: Final = os.environ.get("RAFKA_INTEROP_CLIENTS", ",".join(MODULES)).split(",")

# Other people's libraries warn, leave sockets to the collector and die in threads: not what is asked here.
QUIET: Final = [pytest.mark.filterwarnings("ignore"), pytest.mark.interop]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The long ones are played when they are asked for: -m "interop and slow", or interop or slow for all."""
    asked = "slow" in config.getoption("markexpr")
    for item in list(items):
        if HERE not in item.path.parents:
            continue
        for mark in QUIET:
            item.add_marker(mark)
        if item.get_closest_marker("slow") is not None and not asked:
            items.remove(item)
            config.hook.pytest_deselected(items=[item])


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish() -> None:
    """Sockets that a client forgot to close are collected here, where nobody takes it for our mistake."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(5):
            gc.collect()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    try:
        return (yield)
    except CannotAsk as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    if EXTERNAL:
        yield ExternalBroker(EXTERNAL)
        return
    with Rafka(tmp_path_factory.mktemp("interop"), durability="page-cache") as process:
        yield process


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[RafkaProcess]:
    if EXTERNAL:
        pytest.skip(f"restarts the broker, and {EXTERNAL} is not ours to restart")
    with Rafka(tmp_path) as process:
        yield process


def client_called(library: str) -> Client:
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    module: Any = importlib.import_module(f"{__package__}.{MODULES[library]}")
    client: Client = module
    return client


@pytest.fixture(params=CHOSEN)
def client(request: pytest.FixtureRequest) -> Client:
    return client_called(request.param)


@pytest.fixture(params=CHOSEN)
def other(request: pytest.FixtureRequest) -> Client:
    """A second client, so that what one wrote another reads."""
    return client_called(request.param)


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A topic name that nobody has used."""
    return f"t-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def topic(broker: Broker, client: Client, name: str) -> str:
    """A topic of one partition."""
    with client.admin(broker.bootstrap) as admin:
        admin.create_topic(name)
    return name
