"""Shared state: what it needs, and what it has to do with the store of sessions."""

import pytest

from router_ext.config.sections import Server, SharedStateKind, StoreKind
from router_ext.model.secret import Secret
from tests.unit.config.samples import config, loaded, refused, with_server

URL = "server.sessions.redis_url"


def server(settings: str) -> Server:
    """The section with more settings."""
    return config(with_server(settings), {}).server


def test_nothing_is_shared_by_default() -> None:
    """It takes a Redis, so it is asked for."""
    assert server("port: 8050").shared_state is SharedStateKind.NONE


@pytest.mark.parametrize("sessions", ["", "store: memory, ", "enabled: true, ", "enabled: false, "])
def test_it_uses_the_redis_of_sessions_also_where_they_are_elsewhere_or_off(sessions: str) -> None:
    """The URL is allowed then, and the store stays what it is."""
    read = server(f"shared_state: redis, sessions: {{{sessions}redis_url: 'redis://h'}}")
    assert (read.shared_state, read.sessions.redis_url) == (SharedStateKind.REDIS, Secret("redis://h", "inline"))
    assert read.sessions.store is StoreKind.MEMORY


def test_one_url_serves_both() -> None:
    """Sessions in Redis and shared state have one server."""
    read = server("shared_state: redis, sessions: {store: redis, redis_url: 'redis://h'}")
    assert (read.shared_state, read.sessions.store) == (SharedStateKind.REDIS, StoreKind.REDIS)


@pytest.mark.parametrize("sessions", ["", ", sessions: {}", ", sessions: {enabled: true}"])
def test_it_needs_the_url(sessions: str) -> None:
    """The problem stands at the key that is missing."""
    assert refused(with_server(f"shared_state: redis{sessions}")) == {
        URL: "is required where server.shared_state is redis"
    }


def test_a_url_that_both_need_is_one_problem() -> None:
    """The store says it."""
    assert refused(with_server("shared_state: redis, sessions: {store: redis}")) == {
        URL: "is required where store is redis"
    }


def test_conversations_that_stay_here_do_not_go_there_in_clear_text() -> None:
    """The warning about that is for a store in Redis."""
    sessions = "sessions: {enabled: true, redis_url: 'redis://elsewhere'}"
    assert loaded(with_server(f"shared_state: redis, {sessions}")).warnings == ()


def test_a_url_without_use_is_refused() -> None:
    """Whoever writes it believes that something is shared."""
    assert refused(with_server("shared_state: none, sessions: {redis_url: 'redis://h'}")) == {
        URL: "is for store: redis or server.shared_state: redis only; neither is set"
    }


def test_a_word_that_does_not_exist_is_one_problem() -> None:
    """What it would need is not asked for, and the URL is not refused."""
    assert refused(with_server("shared_state: reddis, sessions: {redis_url: 'redis://h'}")) == {
        "server.shared_state": "expected one of none, redis, got 'reddis'; did you mean 'redis'?"
    }
