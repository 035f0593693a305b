"""Messages as they lie in a server."""

import pytest

from router_ext.model.secret import Secret
from router_ext.ports import SessionStoreError
from router_ext.sessions.blobs import Blobs
from tests.contract.kinds import KEY


@pytest.mark.parametrize("blob", [b"", b"\x07text", b"\x01text", b"\x01", b"text"])
def test_a_damaged_blob_is_an_error(blob: bytes) -> None:
    """Empty, of an unknown form, or not what its first byte says."""
    with pytest.raises(SessionStoreError):
        Blobs().unpack([blob], "s")


@pytest.mark.parametrize("at", [0, 1, 12, 13, -1])
def test_a_changed_byte_of_a_sealed_blob_is_an_error(at: int) -> None:
    """In its mark, its nonce, its text or its tag."""
    blobs = Blobs(KEY)
    (blob,) = blobs.pack([b"hi"], "s")
    changed = bytearray(blob)
    changed[at] ^= 1
    assert blobs.unpack([blob], "s") == (b"hi",)
    with pytest.raises(SessionStoreError):
        blobs.unpack([bytes(changed)], "s")


@pytest.mark.parametrize("length", [0, 1, 12, 13, 28, 31])
def test_a_cut_sealed_blob_is_an_error(length: int) -> None:
    """Wherever it ends."""
    (blob,) = Blobs(KEY).pack([b"hi"], "s")
    assert len(blob) == 32
    with pytest.raises(SessionStoreError):
        Blobs(KEY).unpack([blob[:length]], "s")


@pytest.mark.parametrize("text", ["", "short", "zz" * 32, "A" * 43, "A" * 48, "ff" * 16, "\u00e9" * 44])
def test_a_key_of_another_form_is_refused_unseen(text: str) -> None:
    """The message says where the key came from, not what it is."""
    with pytest.raises(ValueError, match=r"env:SESSION_KEY.*32 bytes") as caught:
        Blobs(Secret(text, "env:SESSION_KEY"))
    assert not text or text not in str(caught.value)


def test_a_key_may_be_base64_or_hexadecimal() -> None:
    """Either alphabet of base64, either case of digits; the same bytes are the same key. Outer white space is none."""
    (blob,) = Blobs(Secret("fb" * 32)).pack([b"hi"], "s")
    for text in ("FB" * 32, "+/v7" * 10 + "+/s=", "-_v7" * 10 + "-_s=", "fb" * 32 + "\n"):
        assert Blobs(Secret(text)).unpack([blob], "s") == (b"hi",)
