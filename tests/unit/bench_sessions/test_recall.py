"""What a stored session must hold."""

from benchmarks.sessions.recall import Acknowledged, Message, Recall, recall

ONE = Acknowledged("q1", "a1")
TWO = Acknowledged("q2", "a2")
SENT = ("q1", "q2")


def turns(*pairs: tuple[str, str]) -> list[Message]:
    """A well-formed session with these turns."""
    return [message for user, answer in pairs for message in (("user", user), ("assistant", answer))]


def test_a_session_with_every_acknowledged_turn_has_lost_none() -> None:
    """The plain case."""
    assert recall(turns(("q1", "a1"), ("q2", "a2")), [ONE, TWO], SENT) == Recall(acknowledged=2)


def test_an_acknowledged_turn_that_is_missing_is_lost() -> None:
    """Also when it is the last one."""
    assert recall(turns(("q1", "a1")), [ONE, TWO], SENT) == Recall(acknowledged=2, lost=1)


def test_a_session_that_is_gone_has_lost_all_turns() -> None:
    """It has no message."""
    assert recall([], [ONE, TWO], SENT) == Recall(acknowledged=2, lost=2)


def test_a_turn_that_is_stored_with_another_answer_is_lost() -> None:
    """The client was shown something else."""
    assert recall(turns(("q1", "other")), [ONE], SENT) == Recall(acknowledged=1, lost=1)


def test_a_turn_that_is_stored_twice_is_a_duplicate_and_not_lost() -> None:
    """Its first try was kept, and its answer did not reach the client."""
    session = turns(("q1", "unseen"), ("q1", "a1"), ("q2", "a2"))
    assert recall(session, [ONE, TWO], SENT) == Recall(acknowledged=2, duplicates=1)


def test_a_turn_that_was_sent_and_never_acknowledged_may_be_stored() -> None:
    """The client gave up; it is nobody else's."""
    assert recall(turns(("q1", "a1"), ("q2", "unseen")), [ONE], SENT) == Recall(acknowledged=1)


def test_a_turn_that_this_client_never_sent_is_foreign() -> None:
    """It is another client's."""
    assert recall(turns(("q1", "a1"), ("other", "a2")), [ONE], SENT) == Recall(acknowledged=1, foreign=1)


def test_turns_in_another_order_than_they_were_acknowledged_in_are_disordered() -> None:
    """One pair is the wrong way round."""
    session = turns(("q2", "a2"), ("q1", "a1"))
    assert recall(session, [ONE, TWO], SENT) == Recall(acknowledged=2, disordered=1)


def test_a_session_that_ends_with_the_user_is_malformed() -> None:
    """A turn is kept as a whole."""
    session = [*turns(("q1", "a1")), ("user", "q2")]
    assert recall(session, [ONE], SENT) == Recall(acknowledged=1, malformed=1)


def test_two_messages_of_one_role_in_a_row_are_malformed() -> None:
    """Roles alternate."""
    session = [("user", "q1"), ("user", "a1")]
    assert recall(session, [ONE], SENT).malformed == 1


def test_recalls_add_up() -> None:
    """Field by field."""
    left, right = Recall(2, 1, 0, 3, 0, 1), Recall(1, 1, 5, 0, 2, 1)
    assert left + right == Recall(3, 2, 5, 3, 2, 2)
