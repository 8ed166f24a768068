"""The codecs: what they read, what they write, and what they refuse to be talked into."""

from __future__ import annotations

import gzip
import random
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rafka.errors import ErrorCode
from rafka.records.batch import read_header
from rafka.records.build import build
from rafka.records.check import BadBatch, Rules
from rafka.records.compress import GZIP, LZ4, SNAPPY, UNPACK_CAP, ZSTD, compress, decompress
from rafka.records.varint import varint

from .kit import DEEP, every_codec, every_compression, raw_batch, raw_record, record, refused, taken

DATA = b"".join(b"the quick brown fox %d " % i for i in range(300))
XERIAL = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)


def lz4() -> Any:
    return pytest.importorskip("lz4.frame")


def cramjam() -> Any:
    return pytest.importorskip("cramjam")


def zstandard() -> Any:
    return pytest.importorskip("zstandard")


def raw_snappy(data: bytes) -> bytes:
    return bytes(cramjam().snappy.compress_raw(data))


def block(data: bytes) -> bytes:
    packed = raw_snappy(data)
    return struct.pack(">i", len(packed)) + packed


def zstd_stream(data: bytes, window_log: int) -> bytes:
    """A frame that does not say its size, as a client's streaming writer makes it."""
    zstd = zstandard()
    parameters = zstd.ZstdCompressionParameters(window_log=window_log, write_content_size=False)
    stream = zstd.ZstdCompressor(compression_params=parameters).compressobj()
    return bytes(stream.compress(data) + stream.flush())


def unpacked_code(codec: int, payload: bytes, cap: int = UNPACK_CAP) -> ErrorCode:
    with pytest.raises(BadBatch) as caught:
        decompress(codec, payload, cap)
    return caught.value.code


@every_codec
@pytest.mark.parametrize("size", [0, 1, 100, 32 << 10, (32 << 10) + 1, 3_000_000])
def test_what_is_packed_is_unpacked(codec: int, size: int) -> None:
    data = (DATA * (size // len(DATA) + 1))[:size]

    assert decompress(codec, compress(codec, data)) == data


@every_compression
def test_noise_goes_through_as_well(codec: int) -> None:
    noise = random.Random(1).randbytes(200_000)

    assert decompress(codec, compress(codec, noise)) == noise


@pytest.mark.parametrize(
    ("codec", "levels"),
    [(GZIP, [-1, 1, 9]), (LZ4, [1, 3, 9, 12, 17]), (ZSTD, [-5, 1, 3, 22])],
    ids=["gzip", "lz4", "zstd"],
)
def test_every_level_that_a_topic_may_have(codec: int, levels: list[int]) -> None:
    _ = {GZIP: lambda: None, LZ4: lz4, ZSTD: zstandard}[codec]()

    for level in levels:
        assert decompress(codec, compress(codec, DATA, level)) == DATA


@every_compression
def test_plain_bytes_are_not_what_the_codec_wrote(codec: int) -> None:
    """B15a"""
    error = refused(raw_batch(b"", codec=codec, packed=raw_record()), DEEP)

    assert error.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert error.appending


@every_compression
def test_a_payload_cut_short(codec: int) -> None:
    """B15a: wherever it was cut"""
    packed = compress(codec, DATA)

    for size in (len(packed) - 1, len(packed) - 3, len(packed) // 2, 20, 5):
        assert unpacked_code(codec, packed[:size]) is ErrorCode.UNKNOWN_SERVER_ERROR


@every_compression
def test_nothing_at_all(codec: int) -> None:
    """B15, B15a: to zstd it is no records, to the others no payload"""
    error = refused(raw_batch(b"", codec=codec, packed=b""), DEEP)

    assert error.code is (ErrorCode.INVALID_RECORD if codec == ZSTD else ErrorCode.UNKNOWN_SERVER_ERROR)


def test_a_codec_that_does_not_exist() -> None:
    assert unpacked_code(5, b"") is ErrorCode.UNKNOWN_SERVER_ERROR


# gzip


@pytest.mark.parametrize(
    "more", [b"junk", b"junk" * 20, b"\x1f\x8b\x08\0", gzip.compress(b"", mtime=0), bytes(100)]
)
def test_bytes_after_a_gzip_stream_are_passed_over(more: bytes) -> None:
    """B15a"""
    assert decompress(GZIP, gzip.compress(DATA) + more) == DATA


def test_gzip_streams_go_on_in_one_another() -> None:
    """B15a"""
    assert decompress(GZIP, gzip.compress(DATA[:100]) + gzip.compress(DATA[100:])) == DATA


@pytest.mark.parametrize("at", [-1, -6, 12])
def test_a_gzip_stream_with_a_wrong_bit(at: int) -> None:
    """B15a: in the size, in the checksum, in the middle"""
    bad = bytearray(gzip.compress(DATA))
    bad[at] ^= 1

    assert unpacked_code(GZIP, bytes(bad)) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_second_gzip_stream_may_be_damaged_too() -> None:
    """B15a"""
    assert unpacked_code(GZIP, gzip.compress(DATA) + b"\x1f\x8b\x08\0" + bytes(6) + b"\xff" * 30)


# snappy


def test_snappy_is_written_in_the_framing_of_the_java_library() -> None:
    cramjam()

    packed = compress(SNAPPY, DATA * 20)

    assert packed.startswith(XERIAL)
    size = int.from_bytes(packed[16:20], "big")
    assert cramjam().snappy.decompress_raw_len(packed[20 : 20 + size]) == 32 << 10


@pytest.mark.parametrize(
    "pack",
    [
        raw_snappy,
        lambda data: XERIAL + block(data),
        lambda data: XERIAL + block(data[:50]) + block(data[50:]),
        lambda data: XERIAL + block(data[:50]) + XERIAL + block(data[50:]),
        lambda data: XERIAL[:8] + struct.pack(">ii", 9, 9) + block(data),
        lambda data: XERIAL + block(data) + b"\0\0",
    ],
    ids=["bare", "framed", "two blocks", "two streams", "another version", "bytes left over"],
)
def test_snappy_that_clients_write(pack: Callable[[bytes], bytes]) -> None:
    cramjam()

    assert decompress(SNAPPY, pack(DATA)) == DATA


@pytest.mark.parametrize(
    "payload",
    [
        XERIAL[:12],
        XERIAL + b"\x7f\xff\xff\xff" + b"some bytes",
        XERIAL + b"\xff\xff\xff\xff" + b"some bytes",
        XERIAL + bytes(4),
        XERIAL + struct.pack(">i", 6) + b"\xff\xff\xff\xff\x07\0",
        b"\xff\xff\xff\xff\x07\0",
    ],
    ids=["half a header", "a block of 2 GB", "a block of -1", "an empty block", "2 GB in a block", "2 GB"],
)
def test_snappy_that_is_not(payload: bytes) -> None:
    """B15a: what is more than the format can express is damage, not a large batch"""
    cramjam()

    assert unpacked_code(SNAPPY, payload) is ErrorCode.UNKNOWN_SERVER_ERROR


# lz4


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"block_linked": False},
        {"content_checksum": True},
        {"block_checksum": True},
        {"store_size": False},
        {"block_size": 7},
        {"block_size": 4, "block_linked": True},
    ],
    ids=str,
)
def test_lz4_frames_of_all_kinds(options: dict[str, Any]) -> None:
    data = random.Random(2).randbytes(100_000) + DATA * 10

    assert decompress(LZ4, lz4().compress(data, **options)) == data


def test_bytes_after_an_lz4_frame_are_passed_over() -> None:
    assert decompress(LZ4, lz4().compress(DATA) + b"junk") == DATA


def test_an_lz4_payload_begins_with_its_frame() -> None:
    skippable = b"\x50\x2a\x4d\x18" + struct.pack("<I", 3) + b"abc"

    with pytest.raises(BadBatch) as refusal:
        decompress(LZ4, skippable + lz4().compress(DATA))

    assert refusal.value.code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_lz4_is_written_in_blocks_that_stand_alone() -> None:
    """Kafka's own reader knows no others"""
    lz4()

    flags = compress(LZ4, DATA * 100)[4]

    assert flags & 0x20


@pytest.mark.parametrize("option", ["content_checksum", "block_checksum"])
def test_a_wrong_checksum_in_an_lz4_frame(option: str) -> None:
    """B15a"""
    bad = bytearray(lz4().compress(DATA, **{option: True}))
    bad[-1 if option == "content_checksum" else -5] ^= 1

    assert unpacked_code(LZ4, bytes(bad)) is ErrorCode.UNKNOWN_SERVER_ERROR


# zstd


@pytest.mark.parametrize("window_log", [10, 21, 23, 27])
def test_zstd_streams_that_do_not_say_their_size(window_log: int) -> None:
    """27 is what a client at level 22 writes, and the most that Kafka reads"""
    assert decompress(ZSTD, zstd_stream(DATA, window_log)) == DATA


@pytest.mark.parametrize("window_log", [28, 31])
def test_a_zstd_window_of_gigabytes(window_log: int) -> None:
    """B15a"""
    assert unpacked_code(ZSTD, zstd_stream(DATA, window_log)) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_zstd_frames_go_on_in_one_another() -> None:
    pack = zstandard().ZstdCompressor().compress
    skippable = b"\x50\x2a\x4d\x18" + struct.pack("<I", 3) + b"abc"

    assert decompress(ZSTD, pack(DATA[:50]) + skippable + pack(b"") + pack(DATA[50:])) == DATA


def test_zstd_and_something_else() -> None:
    packed = zstandard().ZstdCompressor().compress(DATA)

    assert unpacked_code(ZSTD, packed + b"junkjunk") is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_zstd_frame_without_an_end() -> None:
    """B15a: what a writer leaves that was flushed and never closed"""
    zstd = zstandard()
    stream = zstd.ZstdCompressor().compressobj()
    packed = stream.compress(DATA) + stream.flush(zstd.COMPRESSOBJ_FLUSH_BLOCK)

    assert unpacked_code(ZSTD, packed) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_wrong_checksum_in_a_zstd_frame() -> None:
    """B15a"""
    bad = bytearray(zstandard().ZstdCompressor(write_checksum=True).compress(DATA))
    bad[-1] ^= 1

    assert unpacked_code(ZSTD, bytes(bad)) is ErrorCode.UNKNOWN_SERVER_ERROR


# bombs


def gzip_zeros(size: int) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    chunk = bytes(1 << 20)
    return b"".join(packer.compress(chunk) for _ in range(size >> 20)) + packer.flush()


def lz4_zeros(size: int) -> bytes:
    return bytes(lz4().compress(bytes(size), block_linked=False))


def zstd_zeros(size: int) -> bytes:
    return bytes(zstandard().ZstdCompressor().compress(bytes(size)))


def snappy_zeros(size: int) -> bytes:
    return XERIAL + block(bytes(1 << 20)) * (size >> 20)


BOMBS = [(GZIP, gzip_zeros), (SNAPPY, snappy_zeros), (LZ4, lz4_zeros), (ZSTD, zstd_zeros)]


@pytest.mark.parametrize(("codec", "zeros"), BOMBS, ids=["gzip", "snappy", "lz4", "zstd"])
def test_a_bomb_is_too_large(codec: int, zeros: Callable[[int], bytes]) -> None:
    bomb = raw_batch(b"", codec=codec, packed=zeros(64 << 20))

    error = refused(bomb, Rules(deep=True, max_bytes=8 << 20))

    assert error.code is ErrorCode.MESSAGE_TOO_LARGE
    assert not error.appending


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc to read the memory from")
@pytest.mark.parametrize(("codec", "zeros"), BOMBS, ids=["gzip", "snappy", "lz4", "zstd"])
def test_a_bomb_takes_no_more_memory_than_the_cap(codec: int, zeros: Callable[[int], bytes]) -> None:
    """In a process of its own, as this one has made the bomb and is the larger for it."""
    bomb, harmless = zeros(128 << 20), zeros(1 << 20)

    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(codec), str(len(harmless))],
        input=harmless + bomb,
        capture_output=True,
        check=True,
    )

    before, after, code = done.stdout.split()
    assert code == b"MESSAGE_TOO_LARGE"
    assert int(after) - int(before) < 20_000  # kilobytes, where the cap is 4 MB


MEASURE = """
import sys
from rafka.records.compress import decompress
from rafka.records.errors import BadBatch

def peak():
    return next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))

data, codec, size = sys.stdin.buffer.read(), int(sys.argv[1]), int(sys.argv[2])
decompress(codec, data[:size])
bomb, before = data[size:], peak()
try:
    decompress(codec, bomb, 4 << 20)
except BadBatch as error:
    print(before, peak(), error.code.name)
"""


@every_compression
def test_the_cap_is_exact(codec: int) -> None:
    packed = compress(codec, DATA)

    assert decompress(codec, packed, len(DATA)) == DATA
    assert unpacked_code(codec, packed, len(DATA) - 1) is ErrorCode.MESSAGE_TOO_LARGE


def test_ten_megabytes_in_ten_kilobytes_are_taken() -> None:
    """B10: as Kafka does"""
    sent = build([record(bytes(10_000_000))], codec=GZIP)

    assert len(sent) < 11_000
    assert taken(sent, DEEP) == sent


def test_the_cap_grows_with_the_size_that_a_topic_takes() -> None:
    sent = build([record(bytes(100_000))], codec=GZIP)

    assert (
        refused(sent, Rules(deep=True, unpack_cap=1000, max_bytes=50_000)).code is ErrorCode.MESSAGE_TOO_LARGE
    )
    assert taken(sent, Rules(deep=True, unpack_cap=1000, max_bytes=200_000)) == sent


def test_a_batch_that_is_not_looked_into_may_be_a_bomb() -> None:
    """It costs the broker nothing"""
    bomb = raw_batch(varint(0), codec=GZIP, packed=gzip_zeros(64 << 20))

    assert read_header(taken(bomb, Rules())).codec == GZIP
