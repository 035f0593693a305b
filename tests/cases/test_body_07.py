"""BODY-07: a compressed body must not expand without end."""

import gzip
import tracemalloc

import pytest

from tests.fakes.domain import backend, head, router
from tests.fakes.rig import EngineRig


def test_a_small_upload_of_50_mb_is_refused_with_flat_memory() -> None:
    """The default limit is 32 MiB; what is held is that and a little."""
    raw = gzip.compress(b"0" * 50_000_000, mtime=0)
    assert len(raw) < 50_000
    rig = EngineRig(router(backend()))
    tracemalloc.start()
    try:
        status, error = rig.refuse(raw, head(content_encoding="gzip"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (status, error["code"]) == (413, "body_too_large")
    assert peak < 36 << 20


@pytest.mark.parametrize(
    ("coding", "status", "message"),
    [
        ("br", 415, "Content-Encoding must be gzip, deflate, zstd or identity."),
        ("gzip", 400, "The body is not valid gzip data."),
        ("zstd", 400, "The body is not valid zstd data."),
    ],
)
def test_unknown_and_damaged_codings_are_refused_without_internals(coding: str, status: int, message: str) -> None:
    """The message names the coding and nothing of the decoder or of the body."""
    answer, error = EngineRig(router(backend())).refuse(b"\x1f\x8b-not-really", head(content_encoding=coding))
    assert (answer, error["message"]) == (status, message)
