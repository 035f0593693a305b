"""What counts as JSON: texts that every parser reads in the same way."""

import pytest

from router_ext.schemas.strict import UNREADABLE, parse


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"{}", {}),
        (b'\n {"a": [1, 2.5, "x", null, true]} \t', {"a": [1, 2.5, "x", None, True]}),
        (b'{"a": {"k": 1}, "b": {"k": 1}}', {"a": {"k": 1}, "b": {"k": 1}}),
        (b"-0.5e3", -500.0),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'"\\\\ud800"', "\\ud800"),
        ('"ü\u2028"'.encode(), "ü\u2028"),
        (b"9" * 4300, int("9" * 4300)),
    ],
)
def test_json_is_read(text: bytes, value: object) -> None:
    """Every value, with white space around it."""
    assert parse(text) == value


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b'{"a": 1, "a": 1}', id="key twice"),
        pytest.param(b'{"a": 1, "\\u0061": 2}', id="key twice, once escaped"),
        pytest.param(b'[{"x": {"a": 1, "a": 2}}]', id="key twice, inside"),
        pytest.param(b'{"p": NaN}', id="NaN"),
        pytest.param(b"Infinity", id="Infinity"),
        pytest.param(b"[-Infinity]", id="-Infinity"),
        pytest.param(b"{} {}", id="two values"),
        pytest.param(b'{"a": 1} trailing', id="text after it"),
        pytest.param(b'Sure: {"a": 1}', id="text before it"),
        pytest.param(b'{"a": 1', id="cut off"),
        pytest.param(b"{'a': 1}", id="single quotes"),
        pytest.param(b"[1,]", id="trailing comma"),
        pytest.param(b"01", id="leading zero"),
        pytest.param("[\uff11]".encode(), id="a digit that is not ASCII"),
        pytest.param(b'"a\nb"', id="raw newline in a string"),
        pytest.param(b"\xef\xbb\xbf{}", id="byte order mark"),
        pytest.param(b'"\xff"', id="not UTF-8"),
        pytest.param("{}".encode("utf-16"), id="UTF-16"),
        pytest.param(b'"\\ud800"', id="half a surrogate pair"),
        pytest.param(b'{"\\uDC00": 1}', id="half a surrogate pair as a key"),
        pytest.param(b"9" * 4301, id="a number of 4,301 digits"),
        pytest.param(b"[" * 100_000 + b"]" * 100_000, id="100,000 levels"),
    ],
)
def test_everything_else_is_refused(text: bytes) -> None:
    """Nothing is repaired, and no text raises anything else."""
    with pytest.raises(UNREADABLE):
        parse(text)
