"""Addresses as people write them, and which of them clients are told."""

from __future__ import annotations

import pytest

from rafka.config import Config, ConfigError, Listener, load
from rafka.config.listeners import parse_listener


@pytest.mark.parametrize(
    ("text", "listener"),
    [
        ("127.0.0.1:9092", Listener("127.0.0.1", 9092)),
        ("localhost:0", Listener("localhost", 0)),
        (":9092", Listener("", 9092)),
        ("[::1]:9092", Listener("::1", 9092)),
        ("PLAINTEXT://kafka:29092", Listener("kafka", 29092, "PLAINTEXT")),
        ("plaintext_host://:9092", Listener("", 9092, "PLAINTEXT_HOST")),
        ("EXTERNAL://[::]:9092", Listener("::", 9092, "EXTERNAL")),
    ],
)
def test_an_address_is_read_as_people_write_it(text: str, listener: Listener) -> None:
    assert parse_listener(text) == listener


@pytest.mark.parametrize(
    "text",
    ["", "localhost", "9092", "::1:9092", "[::1", "[::1]9092", "h:x", "h:65536", "h:-1", "://h:1", "h:١"],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be HOST:PORT|brackets"):
        parse_listener(text)


def listening(listen: str, advertise: str = "") -> Config:
    flags = [("listen", listen, "--listen")]
    return load(flags=[*flags, ("advertise", advertise, "--advertise")] if advertise else flags)


@pytest.mark.parametrize(
    ("listen", "advertise", "told"),
    [
        ("127.0.0.1:0", "", ["127.0.0.1:7000"]),
        ("127.0.0.1:0,[::1]:0", "", ["127.0.0.1:7000", "[::1]:7001"]),
        (":9092", "", [None]),
        ("0.0.0.0:9092", "", [None]),
        (":0", "example.com:9092", ["example.com:9092"]),
        (":0", "example.com:0", ["example.com:7000"]),
        ("127.0.0.1:0", ":9093", ["127.0.0.1:9093"]),
        (":0,:1", "a:1", ["a:1", "a:1"]),
        (":0,:1", "a:1,b:2", ["a:1", "b:2"]),
        ("X://:0,PLAINTEXT://:1", "PLAINTEXT://p:1,X://x:2", ["x:2", "p:1"]),
        ("X://:0,PLAINTEXT://h:1", "X://x:2", ["x:2", "h:7001"]),
    ],
)
def test_clients_are_told_the_address_that_fits_their_listener(
    listen: str, advertise: str, told: list[str | None]
) -> None:
    flags = [
        ("listener.security.protocol.map", "X:PLAINTEXT", "--set"),
        ("listen", listen, "--listen"),
        ("advertise", advertise, "--advertise"),
    ]

    network = load(flags=flags).network

    addresses = [network.advertised(at, 7000 + at) for at in range(len(network.listen))]
    assert [str(one).partition("://")[2] if one else None for one in addresses] == told


@pytest.mark.parametrize(
    ("listen", "advertise", "words"),
    [
        (":1,:2,:3", "a:1,b:2", "2 addresses for 3 listeners"),
        ("127.0.0.1:1", "OUTSIDE://a:1", "no listener has this name|say in listener.security"),
        ("SSL://:1", "", "SSL is not served yet, only PLAINTEXT is"),
        ("OUTSIDE://:1", "", "say in listener.security.protocol.map what OUTSIDE speaks"),
        ("CONTROLLER://:1", "", "none of them is for clients"),
    ],
)
def test_what_cannot_be_served_is_refused(listen: str, advertise: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        listening(listen, advertise)


def test_a_name_that_stands_for_encryption_is_not_served_in_the_clear() -> None:
    flags = [
        ("listener.security.protocol.map", "OUTSIDE:SASL_SSL", "--set"),
        ("listen", "OUTSIDE://:1", "--set"),
    ]

    with pytest.raises(ConfigError, match="SASL_SSL is not served yet"):
        load(flags=flags)


def test_whoever_only_advertises_as_for_kafka_is_listened_to_everywhere() -> None:
    config = load(environ={"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:29092"})

    assert config.network.listen == (Listener("0.0.0.0", 29092, "PLAINTEXT"),)


def test_whoever_only_advertises_in_our_words_still_listens_at_home() -> None:
    config = load(flags=[("advertise", "kafka:29092", "--advertise")])

    assert config.network.listen == (Listener("127.0.0.1", 9092),)


@pytest.mark.parametrize(
    ("host", "port", "told"),
    [
        ("broker.example", "9999", "PLAINTEXT://broker.example:9999"),
        ("broker.example", "", "PLAINTEXT://broker.example:9092"),
        ("", "9999", "PLAINTEXT://127.0.0.1:9999"),
        ("2001:db8::1", "9999", "PLAINTEXT://[2001:db8::1]:9999"),
    ],
)
def test_the_address_for_clients_may_come_in_two_halves(host: str, port: str, told: str) -> None:
    environ = {"RAFKA_KAFKA_CLIENT_HOST": host, "RAFKA_KAFKA_CLIENT_PORT": port}

    network = load(environ=environ).network

    assert str(network.advertised(0, 9092)) == told
