"""Compressed bodies."""

import gzip
import tracemalloc
import zlib

import pytest
import zstandard

from router_ext.model.rejection import Reason, Rejection
from router_ext.payload.encoding import MAX_MEMBERS, decoded

TEXT = b'{"model":"m-a"}' * 10
LIMIT = 1 << 20


def _raw_deflate(data: bytes) -> bytes:
    engine = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return engine.compress(data) + engine.flush()


ENCODED = {
    "gzip": gzip.compress(TEXT, mtime=0),
    "x-gzip": gzip.compress(TEXT, mtime=0),
    " GZIP ": gzip.compress(TEXT, mtime=0),
    "deflate": zlib.compress(TEXT),
    "zstd": zstandard.ZstdCompressor().compress(TEXT),
}


def _reason(result: bytes | Rejection) -> Reason:
    assert isinstance(result, Rejection), result[:40]
    return result.reason


@pytest.mark.parametrize("coding", ENCODED)
def test_each_coding_is_inflated(coding: str) -> None:
    """Names are compared without case."""
    assert decoded(ENCODED[coding], coding, LIMIT) == TEXT


def test_deflate_without_the_zlib_wrapper_is_inflated() -> None:
    """Some clients mean bare deflate data by "deflate"."""
    assert decoded(_raw_deflate(TEXT), "deflate", LIMIT) == TEXT


@pytest.mark.parametrize("coding", ["", "identity", " Identity "])
def test_a_body_without_coding_is_the_same_object(coding: str) -> None:
    """No copy is made."""
    assert decoded(TEXT, coding, 1) is TEXT


@pytest.mark.parametrize("coding", ["br", "compress", "gzip, gzip", "gzip,", "*"])
def test_an_unknown_coding_is_refused(coding: str) -> None:
    """415, before a byte is inflated."""
    result = decoded(TEXT, coding, LIMIT)
    assert isinstance(result, Rejection)
    assert (result.reason, result.status) == (Reason.UNSUPPORTED_ENCODING, 415)


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 66_050, 131_072, 300_000])
@pytest.mark.parametrize("wrapped", [False, True])
def test_every_size_around_the_steps_is_inflated_whole(size: int, wrapped: bool) -> None:
    """zlib may hold back output although it took all of its input."""
    data = b"0" * size
    assert decoded(zlib.compress(data, 9) if wrapped else _raw_deflate(data), "deflate", LIMIT) == data


def test_several_gzip_members_are_one_body() -> None:
    """RFC 1952, 2.2."""
    assert (
        decoded(
            gzip.compress(b"one", mtime=0) + gzip.compress(b"", mtime=0) + gzip.compress(b"two", mtime=0), "gzip", LIMIT
        )
        == b"onetwo"
    )


def test_the_number_of_gzip_members_is_bounded() -> None:
    """Each costs time, however short it is."""
    empty = gzip.compress(b"", mtime=0)
    assert decoded(empty * MAX_MEMBERS, "gzip", LIMIT) == b""
    assert _reason(decoded(empty * (MAX_MEMBERS + 1), "gzip", LIMIT)) is Reason.BAD_ENCODING


def test_several_zstd_frames_are_one_body() -> None:
    """A skippable frame between them counts as nothing."""
    one, two = (zstandard.ZstdCompressor().compress(part) for part in (b"one", b"two"))
    assert decoded(one + b"\x50\x2a\x4d\x18\x02\x00\x00\x00ab" + two, "zstd", LIMIT) == b"onetwo"


@pytest.mark.parametrize("cut", [1, 4, 8, 20])
@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_truncated_data_is_refused(coding: str, cut: int) -> None:
    """The check sum at the end must be there."""
    assert _reason(decoded(ENCODED[coding][:-cut], coding, LIMIT)) is Reason.BAD_ENCODING


def test_truncated_zstd_yields_less_than_the_text() -> None:
    """What is missing then shows as broken JSON."""
    result = decoded(ENCODED["zstd"][:-5], "zstd", LIMIT)
    assert isinstance(result, bytes)
    assert result != TEXT
    assert TEXT.startswith(result)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd"])
def test_garbage_is_refused_without_its_content(coding: str) -> None:
    """400, and the message names the coding only."""
    result = decoded(b"hunter2-not-compressed", coding, LIMIT)
    assert isinstance(result, Rejection)
    assert (result.reason, result.status) == (Reason.BAD_ENCODING, 400)
    assert result.message == f"The body is not valid {coding} data."


@pytest.mark.parametrize(
    ("coding", "data"),
    [
        ("gzip", gzip.compress(TEXT, mtime=0) + b"junk"),
        ("deflate", zlib.compress(TEXT) + b"junk"),
        ("deflate", _raw_deflate(TEXT) + b"junk"),
        ("deflate", b"\x03\x00" * 1000),
        ("zstd", zstandard.ZstdCompressor().compress(TEXT) + b"junk"),
    ],
)
def test_data_after_the_end_is_refused(coding: str, data: bytes) -> None:
    """Only gzip members and zstd frames may follow each other."""
    assert _reason(decoded(data, coding, LIMIT)) is Reason.BAD_ENCODING


def _compressed(coding: str, data: bytes) -> bytes:
    if coding == "gzip":
        return gzip.compress(data, mtime=0)
    return zlib.compress(data) if coding == "deflate" else zstandard.ZstdCompressor().compress(data)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd"])
def test_the_limit_itself_still_fits(coding: str) -> None:
    """``limit`` bytes are read, one more is refused with 413."""
    assert decoded(_compressed(coding, b"0" * 100_000), coding, 100_000) == b"0" * 100_000
    result = decoded(_compressed(coding, b"0" * 100_001), coding, 100_000)
    assert isinstance(result, Rejection)
    assert (result.reason, result.status) == (Reason.BODY_TOO_LARGE, 413)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd"])
def test_a_bomb_stops_at_the_limit(coding: str) -> None:
    """50 MB of zeros against a limit of 1 MiB: memory stays within a few times the limit."""
    bomb = _compressed(coding, b"0" * 50_000_000)
    tracemalloc.start()
    try:
        reason = _reason(decoded(bomb, coding, LIMIT))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert reason is Reason.BODY_TOO_LARGE
    assert peak < 4 * LIMIT
