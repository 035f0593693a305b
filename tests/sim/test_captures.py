"""The reader of recorded wire files."""

from tests.captures import load_request, load_response


def test_a_plain_response_has_status_headers_and_body() -> None:
    """No chunks, and complete, since content-length bytes are there."""
    response = load_response("llamacpp", "get_health")
    assert (response.status, response.body, response.chunks, response.complete) == (200, b'{"status":"ok"}', (), True)
    assert response.headers["content-type"] == "application/json; charset=utf-8"


def test_a_chunk_may_hold_two_events() -> None:
    """llama.cpp puts its role event and the first token into one chunk of 0x1e6 bytes."""
    response = load_response("llamacpp", "chat_stream_usage")
    assert len(response.chunks[0]) == 0x1E6
    assert response.chunks[0].count(b"data: ") == 2
    assert response.events()[-1] == "[DONE]"
    assert response.complete


def test_a_killed_engine_leaves_a_stream_without_its_last_chunk() -> None:
    """No end marker, and not complete."""
    response = load_response("llamacpp", "kill9_midstream")
    assert not response.complete
    assert "[DONE]" not in response.events()


def test_a_request_has_method_path_headers_and_body() -> None:
    """The body is as long as its header says."""
    request = load_request("vllm", "err_missing_messages")
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.body == b'{"model": "smollm2", "max_tokens": 4}'
    assert request.headers["content-length"] == "37"
