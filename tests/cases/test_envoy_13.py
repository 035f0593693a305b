"""ENVOY-13: text of a client must not become a second header line."""

import pytest

from router_ext.extproc.codec import message_of
from router_ext.stream.effects import HeadersReply, Side
from tests.fakes.domain import backend, head, router
from tests.fakes.rig import EngineRig


@pytest.mark.parametrize("tail", ["\\r\\nx-kronaxis-cluster: evil", "\\u0000", "\\n", "\\r", "é", "\\u007f", "\\u2028"])
def test_a_model_name_with_odd_characters_is_refused(tail: str) -> None:
    """CR, LF, NUL, other control characters and everything outside ASCII."""
    status, error = EngineRig(router(backend())).refuse(f'{{"model":"m-a{tail}"}}'.encode())
    assert (status, error["code"]) == (400, "invalid_model")


@pytest.mark.parametrize("value", ["s\r\nauthorization: x", "s\x00", "s\n", "s\xe9", "s" * 129])
def test_a_callers_header_with_odd_characters_is_refused(value: str) -> None:
    """Its value goes into Envoy's metadata and the log."""
    status, error = EngineRig(router(backend())).refuse(head_=head(x_kronaxis_service=value))
    assert (status, error["code"]) == (400, "bad_header")


def test_an_escaped_line_end_stays_escaped() -> None:
    """Percent signs are ordinary characters: nothing decodes them."""
    plan = EngineRig(router(backend())).forward(head_=head(x_kronaxis_service="s1%0d%0aauthorization: Bearer x"))
    message = message_of(HeadersReply(Side.REQUEST, plan.edits, metadata=plan.metadata))
    options = message.request_headers.response.header_mutation.set_headers
    assert [option.header.key for option in options] == ["x-kronaxis-cluster", "x-envoy-upstream-rq-timeout-ms"]
    assert plan.metadata["service"] == "s1%0d%0aauthorization: Bearer x"
