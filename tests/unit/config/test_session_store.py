"""What the store of sessions needs, and what does not go together."""

import base64

import pytest

from router_ext.config.sections import Sessions
from router_ext.model.secret import Secret
from tests.unit.config.samples import config, refusal, refused, with_server

URL = "server.sessions.redis_url"
KEY = "server.sessions.encryption_key"
TIMEOUT = "server.sessions.store_timeout"
KEY_BYTES = bytes(range(224, 256))
KEY_HEX = "e0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"


def redis(settings: str) -> str:
    """The smallest configuration with sessions in Redis and more settings."""
    return with_server(f"sessions: {{store: redis, {settings}}}")


def sessions(text: str, **environ: str) -> Sessions:
    """The section of ``text``."""
    return config(text, environ).server.sessions


def test_redis_needs_its_url() -> None:
    """A store without an address is a problem at the key that is missing."""
    assert refused(with_server("sessions: {store: redis}")) == {URL: "is required where store is redis"}


@pytest.mark.parametrize("store", ["", "store: memory, "])
@pytest.mark.parametrize("setting", ["redis_url: 'redis://h'", "encryption_key: env:K"])
def test_memory_refuses_what_is_for_redis(store: str, setting: str) -> None:
    """Whoever writes it believes that conversations are shared or encrypted."""
    problems = refused(with_server(f"sessions: {{{store}{setting}}}"), {"K": KEY_HEX})
    assert (
        problems
        == {
            "redis_url: 'redis://h'": {URL: "is for store: redis or server.shared_state: redis only; neither is set"},
            "encryption_key: env:K": {KEY: "is for store: redis only; the store is memory"},
        }[setting]
    )


def test_a_store_that_does_not_exist_is_one_problem() -> None:
    """What it would need is not asked for."""
    assert refused(with_server("sessions: {store: reddis, redis_url: 'redis://h'}")) == {
        "server.sessions.store": "expected one of memory, redis, got 'reddis'; did you mean 'redis'?"
    }


@pytest.mark.parametrize(
    "url",
    [
        "redis://localhost",
        "redis://localhost:6379/",
        "redis://:p%40ss@[::1]:1/15",
        "rediss://user:pw@redis.internal:65535/0",
        "rediss://h?ssl_ca_certs=/etc/ca.pem&ssl_certfile=/c.pem&ssl_keyfile=/k.pem&db=3",
        "unix:///run/redis.sock",
        "unix://:pw@/run/redis.sock?db=2",
    ],
)
def test_a_redis_url_is_taken_as_it_stands(url: str) -> None:
    """Host with or without port, database and credential; TLS files; a socket."""
    assert sessions(redis(f"redis_url: '{url}'")).redis_url == Secret(url, "inline")
    assert sessions(redis("redis_url: env:R"), R=url).redis_url == Secret(url, "env:R")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://hunter2", "the URL must start with redis://, rediss:// or unix:// and hold printable ASCII"),
        ("redis:hunter2", "the URL must start with redis://"),
        ("redis://:hunter2 x@h", "the URL must start with redis://"),
        ("redis://", "the URL must start with redis://"),
        ("redis://:hunter2@", "the host or port of the URL is malformed"),
        ("redis://:hunter2@h:0", "the host or port of the URL is malformed"),
        ("redis://:hunter2@h:65536", "the host or port of the URL is malformed"),
        ("redis://:hunter2@h:", "the host or port of the URL is malformed"),
        ("redis://:hun/ter2@h", "the host or port of the URL is malformed"),
        ("redis://:hun[ter2@h", "the host or port of the URL is malformed"),
        ("redis://h/hunter2", "the path of the URL must be the number of a database or nothing"),
        ("redis://h/1/2", "the path of the URL must be the number of a database or nothing"),
        ("redis://h?db=hunter2", "the option db of the URL must be the number of a database"),
        ("redis://h?socket_timeout=9", "the URL may have no fragment and no options but db"),
        ("redis://h?ssl_ca_certs=/c", "the URL may have no fragment and no options but db"),
        ("rediss://h?ssl_cert_reqs=none", "no options but db, ssl_ca_certs, ssl_certfile, ssl_keyfile"),
        ("redis://h#hunter2", "the URL may have no fragment"),
        ("unix://run/redis.sock", "a unix:// URL must name a socket by its absolute path"),
        ("unix:///", "a unix:// URL must name a socket by its absolute path"),
        ("redis://:${hunter2}@h", "the URL holds '${', which is not replaced: write env:NAME as the whole value"),
    ],
)
def test_a_wrong_redis_url_is_refused_without_being_quoted(url: str, message: str) -> None:
    """It may hold a password."""
    text = redis(f"redis_url: '{url}'")
    assert message in refused(text)[URL]
    assert "hunter2" not in refusal(text)


def test_a_redis_url_is_never_shown() -> None:
    """Neither the section nor the whole configuration prints it; only where it came from."""
    read = config(redis("redis_url: env:R, encryption_key: env:K"), {"R": "redis://:hunter2@h", "K": KEY_HEX})
    assert "hunter2" not in repr(read)
    assert KEY_HEX not in repr(read)
    assert str(read.server.sessions.redis_url) == "<secret from env:R>"


@pytest.mark.parametrize(("value", "problem"), [("", "is empty"), (None, "is not set")])
def test_a_redis_url_needs_its_variable(value: str | None, problem: str) -> None:
    """A missing secret is no store without a password."""
    environ = {} if value is None else {"R": value}
    assert refused(redis("redis_url: env:R"), environ) == {URL: f"environment variable R {problem}"}


@pytest.mark.parametrize(
    "written",
    [
        KEY_HEX,
        KEY_HEX.upper(),
        "4OHi4+Tl5ufo6err7O3u7/Dx8vP09fb3+Pn6+/z9/v8=",
        "4OHi4-Tl5ufo6err7O3u7_Dx8vP09fb3-Pn6-_z9_v8=",
        "4OHi4+Tl5ufo6err7O3u7/Dx8vP09fb3+Pn6+/z9/v8",
    ],
)
def test_an_encryption_key_is_32_bytes_in_either_form(written: str) -> None:
    """Hexadecimal digits, base64, its form for URLs, without padding: all become the same digits."""
    key = sessions(redis("redis_url: 'redis://h', encryption_key: env:K"), K=written).encryption_key
    assert key == Secret(KEY_HEX, "env:K")
    assert bytes.fromhex(key.reveal()) == KEY_BYTES


@pytest.mark.parametrize(
    "written",
    [
        "",
        KEY_HEX[:-2],
        KEY_HEX + "00",
        "g" + KEY_HEX[1:],
        base64.b64encode(KEY_BYTES[:31]).decode(),
        base64.b64encode(KEY_BYTES + b"x").decode(),
        f"{KEY_HEX}\n",
        "correct horse battery staple, 32",
    ],
)
def test_another_encryption_key_is_refused_without_being_quoted(written: str) -> None:
    """31 and 33 bytes, a letter that is no digit, a line end, a pass phrase."""
    problems = refused(redis("redis_url: 'redis://h', encryption_key: env:K"), {"K": written})
    assert problems == {KEY: "environment variable K must hold 32 bytes as base64 or as 64 hexadecimal digits"}


def test_an_encryption_key_in_the_file_is_refused() -> None:
    """Whoever reads the file could read the conversations; the message does not repeat it."""
    assert refused(redis(f"redis_url: 'redis://h', encryption_key: {KEY_HEX}")) == {
        KEY: "the key must not stand in the file: write env:NAME"
    }


BELOW = "is not below server.message_timeout"
THEN = "Envoy would go on without the router first"


@pytest.mark.parametrize(
    ("settings", "timeout", "problem"),
    [
        ("message_timeout: 501ms", "", None),
        ("message_timeout: 500ms", "", f"0.5s {BELOW}, 0.5s: {THEN}"),
        ("queue_aware_routing: false", ", store_timeout: 999ms", None),
        ("queue_aware_routing: false", ", store_timeout: 1s", f"1s {BELOW}, 1s: {THEN}"),
    ],
)
def test_the_store_must_answer_before_envoy_gives_up(settings: str, timeout: str, problem: str | None) -> None:
    """Both sides of the bound, written and by default."""
    text = with_server(f"{settings}, sessions: {{store: redis, redis_url: 'redis://h'{timeout}}}")
    if problem is None:
        config(text)
    else:
        assert refused(text) == {TIMEOUT: problem}


def test_the_default_time_limit_of_a_store_in_memory_does_not_matter() -> None:
    """A message timeout below it is fine; a limit that is written must make sense all the same."""
    config(with_server("message_timeout: 250ms"))
    config(with_server("message_timeout: 250ms, sessions: {enabled: true}"))
    assert list(refused(with_server("message_timeout: 250ms, sessions: {store_timeout: 250ms}"))) == [TIMEOUT]


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("max_bytes: 1", "max_bytes: 0"),
        ("max_bytes: 1024GiB", "max_bytes: 1025GiB"),
        ("store_timeout: 1ms", "store_timeout: 0"),
    ],
)
def test_limits_have_bounds(good: str, bad: str) -> None:
    """The last values inside and the first outside."""
    config(with_server(f"sessions: {{{good}}}"))
    assert list(refused(with_server(f"sessions: {{{bad}}}"))) == [f"server.sessions.{bad.split(':', maxsplit=1)[0]}"]
