"""The codecs of record batches, by their number in a batch's attributes.

gzip is part of Python; snappy, lz4 and zstd come with `rafka[compression]` and are
imported when first met. Whatever is unpacked has a cap, and memory is never taken on the
word of a length field: ten kilobytes may say that they are ten gigabytes.

The kinds of failure: a payload that its codec cannot read, which Kafka answers with
UNKNOWN_SERVER_ERROR; one that grows beyond the cap, MESSAGE_TOO_LARGE; and a codec that
is not installed here, MissingCodec.
"""

from __future__ import annotations

import importlib
import struct
import zlib
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Final

from ..errors import ErrorCode, KafkaError
from ..types import Buffer
from .errors import too_large, unreadable

NONE: Final = 0
GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4
NAMES: Final = ("none", "gzip", "snappy", "lz4", "zstd")

_LIBRARIES: Final = {SNAPPY: "cramjam", LZ4: "lz4.frame", ZSTD: "zstandard"}

UNPACK_CAP: Final = 16 << 20  # Kafka has none; 10 MB out of 10 KB must be taken, a bomb must not
ZSTD_WINDOW: Final = 1 << 27  # how far back zstd may look, as in Kafka: a producer at level 22 needs it


class MissingCodec(KafkaError):
    """The library of a codec is not installed."""

    def __init__(self, codec: int) -> None:
        super().__init__(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"{NAMES[codec]} is not installed here: pip install rafka[compression]",
        )
        self.codec = codec


def missing_codecs() -> list[str]:
    """The names of those that are not installed."""
    packages = {codec: name.partition(".")[0] for codec, name in _LIBRARIES.items()}
    return [NAMES[codec] for codec, package in packages.items() if find_spec(package) is None]


def decompress(codec: int, payload: Buffer, cap: int = UNPACK_CAP) -> bytes:
    """The records of a batch; BadBatch where they cannot be had."""
    if codec == NONE:
        return bytes(payload)
    if not NONE < codec < len(_DECOMPRESS):
        raise unreadable(f"no such codec: {codec}")
    return _DECOMPRESS[codec](memoryview(payload), cap)


def compress(codec: int, data: bytes, level: int | None = None) -> bytes:
    """The payload of a batch; level None is the codec's own default."""
    return _COMPRESS[codec](data, level)


def _library(codec: int) -> Any:
    try:
        return importlib.import_module(_LIBRARIES[codec])
    except ImportError:
        raise MissingCodec(codec) from None


def _over(cap: int) -> Exception:
    return too_large(f"it unpacks to more than {cap} bytes")


# gzip


_GZIP_MAGIC: Final = b"\x1f\x8b\x08"
_GZIP_LEAST: Final = 18  # header and trailer: no second stream can be as short


def _gzip_decompress(payload: memoryview, cap: int) -> bytes:
    out = bytearray()
    rest = bytes(payload)
    while True:
        stream = zlib.decompressobj(wbits=31)
        try:
            out += stream.decompress(rest, cap + 1 - len(out))
        except zlib.error as broken:
            raise unreadable(f"gzip: {broken}") from None
        if len(out) > cap:
            raise _over(cap)
        if not stream.eof:
            raise unreadable("gzip: cut short")
        rest = stream.unused_data
        if len(rest) <= _GZIP_LEAST or not rest.startswith(_GZIP_MAGIC):
            return bytes(out)  # whatever it is, Kafka passes over it


def _gzip_compress(data: bytes, level: int | None) -> bytes:
    packer = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()


# snappy: in the framing of the Java library, which clients write, or bare


_XERIAL: Final = b"\x82SNAPPY\0"
_XERIAL_HEADER: Final = _XERIAL + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK: Final = 32 << 10
_SNAPPY_RATIO: Final = 22  # three bytes can stand for 64: what says that it is more is a lie


def _snappy_decompress(payload: memoryview, cap: int) -> bytes:
    cramjam = _library(SNAPPY)
    if bytes(payload[:8]) != _XERIAL:
        return _snappy_block(cramjam, payload, cap)
    out = bytearray()
    at, end = 0, len(payload)
    while at + 4 <= end:
        if bytes(payload[at : at + 8]) == _XERIAL:  # streams that were joined
            at += len(_XERIAL_HEADER)
            if at > end:
                raise unreadable("snappy: cut short")
            continue
        size = int.from_bytes(payload[at : at + 4], "big")
        at += 4
        if at + size > end:
            raise unreadable("snappy: cut short")
        out += _snappy_block(cramjam, payload[at : at + size], cap - len(out))
        at += size
    return bytes(out)


def _snappy_block(cramjam: Any, block: memoryview, cap: int) -> bytes:
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if len(block) * _SNAPPY_RATIO >= size > cap:
            raise _over(cap)
        if size > len(block) * _SNAPPY_RATIO:
            raise unreadable(f"snappy: {len(block)} bytes that would be {size}")
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as broken:
        raise unreadable(f"snappy: {broken}") from None


def _snappy_compress(data: bytes, level: int | None) -> bytes:
    snappy = _library(SNAPPY).snappy
    out = bytearray(_XERIAL_HEADER)
    for at in range(0, len(data), _XERIAL_BLOCK):
        block = bytes(snappy.compress_raw(data[at : at + _XERIAL_BLOCK]))
        out += len(block).to_bytes(4, "big") + block
    return bytes(out)


# lz4: the frame format


_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"


def _lz4_decompress(payload: memoryview, cap: int) -> bytes:
    frame = _library(LZ4)
    if bytes(payload[:4]) != _LZ4_MAGIC:  # a skippable frame in front is for others
        raise unreadable("lz4: no frame")
    stream = frame.LZ4FrameDecompressor()
    try:
        data: bytes = stream.decompress(payload, cap + 1)
    except (RuntimeError, EOFError) as broken:
        raise unreadable(f"lz4: {broken}") from None
    if len(data) > cap:
        raise _over(cap)
    if not stream.eof:
        raise unreadable("lz4: cut short")
    return data


def _lz4_compress(data: bytes, level: int | None) -> bytes:
    frame = _library(LZ4)
    # Kafka's level 9, its default, is the fast compressor; its readers want blocks that stand alone.
    strength = 0 if level is None or level == 9 else level
    packed: bytes = frame.compress(data, compression_level=strength, block_linked=False)
    return packed


# zstd


def _zstd_decompress(payload: memoryview, cap: int) -> bytes:
    zstd = _library(ZSTD)
    _require_whole_frames(zstd, payload)
    reader = zstd.ZstdDecompressor(max_window_size=ZSTD_WINDOW).stream_reader(
        payload, read_across_frames=True
    )
    try:
        data: bytes = reader.read(cap + 1)
    except zstd.ZstdError as broken:
        raise unreadable(f"zstd: {broken}") from None
    if len(data) > cap:
        raise _over(cap)
    return data


_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE: Final = b"\x2a\x4d\x18"
_ZSTD_RLE: Final = 1


def _require_whole_frames(zstd: Any, payload: memoryview) -> None:
    """The library's reader, the one that can be stopped at a cap, takes a cut frame for a whole one."""
    data, at = bytes(payload), 0
    while at < len(data):
        if data[at + 1 : at + 4] == _ZSTD_SKIPPABLE:
            at += 8 + int.from_bytes(data[at + 4 : at + 8], "little")
            continue
        if not data.startswith(_ZSTD_MAGIC, at):
            raise unreadable("zstd: no frame")
        at = _zstd_frame_end(zstd, data, at)
    if at != len(data):
        raise unreadable("zstd: cut short")


def _zstd_frame_end(zstd: Any, data: bytes, at: int) -> int:
    """Where the frame at `at` ends, if all of it is there: block by block, as each says its size."""
    try:
        checksum = zstd.get_frame_parameters(data[at : at + 18]).has_checksum
        at += zstd.frame_header_size(data[at : at + 18])
    except zstd.ZstdError as broken:
        raise unreadable(f"zstd: {broken}") from None
    last = False
    while not last and at < len(data):
        block = int.from_bytes(data[at : at + 3], "little")
        last = bool(block & 1)
        at += 3 + (1 if block >> 1 & 3 == _ZSTD_RLE else block >> 3)
    if not last:
        raise unreadable("zstd: cut short")
    return at + 4 if checksum else at


def _zstd_compress(data: bytes, level: int | None) -> bytes:
    zstd = _library(ZSTD)
    packed: bytes = zstd.ZstdCompressor(level=3 if level is None else level).compress(data)
    return packed


_DECOMPRESS: Final[tuple[Callable[[memoryview, int], bytes], ...]] = (
    lambda payload, cap: bytes(payload),
    _gzip_decompress,
    _snappy_decompress,
    _lz4_decompress,
    _zstd_decompress,
)
_COMPRESS: Final[tuple[Callable[[bytes, int | None], bytes], ...]] = (
    lambda data, level: data,
    _gzip_compress,
    _snappy_compress,
    _lz4_compress,
    _zstd_compress,
)
