"""Messages as pieces of JSON, and how a turn joins a stored conversation."""

import pytest

from router_ext.model.rejection import Reason, Rejection
from router_ext.payload.transcript import MAX_MESSAGES, Fresh, fresh_messages, hydrated, read_messages
from tests.fakes.prompts import message
from tests.fakes.transcripts import conversation, elements, envelope, fresh, sent, texts

BE_BRIEF = message("Be brief.", "system")
BE_KIND = message("Be kind.", "developer")
HI = message("Hi")
HELLO = message("Hello!", "assistant")
BYE = message("Bye")


def _nested(levels: int) -> bytes:
    """A message that nests ``levels`` levels in all."""
    return b'{"x":' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b'{"messages":[{}]}', (b"{}",)),
        (b'{"messages":[{"role":"user"},{"a":[1,{}]}]}', (b'{"role":"user"}', b'{"a":[1,{}]}')),
        (b' {"messages" : [ { "a" : 1 }\t,\r\n{"b":"]},{"} ] , "n":1}', (b'{ "a" : 1 }', b'{"b":"]},{"}')),
        (b'{"messages":[{"a":1.0e2,"b":12345678901234567890123}]}', (b'{"a":1.0e2,"b":12345678901234567890123}',)),
        (b'{"messages":[{"a":"\\u00e9\\/"}]}', (b'{"a":"\\u00e9\\/"}',)),
        ('{"messages":[{"é":"🌍"},{}]}'.encode(), ('{"é":"🌍"}'.encode(), b"{}")),
        (b'{"m\\u0065ssages":[{"a":1}]}', (b'{"a":1}',)),
    ],
)
def test_messages_are_the_bytes_that_the_client_sent(raw: bytes, expected: tuple[bytes, ...]) -> None:
    """Escapes, numbers and inner white space stay; white space between messages belongs to none."""
    assert elements(raw) == expected


@pytest.mark.parametrize(
    "text",
    [
        rb'{"a":"\ud800"}',
        rb'{"a":"\uDFFF\uD83D"}',
        rb'{"a":"\\\ud83d\ude00\ud83d\\u"}',
        rb'{"a":"\\ud800\udc00\n"}',
        rb'{"\ud800":1}',
    ],
)
def test_lone_surrogates_stay_as_they_came(text: bytes) -> None:
    """Engines accept them, so no message moves or changes because of one."""
    assert elements(b'{"messages":[{} , ' + text + b' ,{"b":2}]}') == (b"{}", text, b'{"b":2}')


@pytest.mark.parametrize(
    "raw",
    [
        b"{}",
        b'{"messages":null}',
        b'{"messages":"Hi"}',
        b'{"messages":{"role":"user"}}',
        b'{"messages":[]}',
        b'{"messages":[ ]}',
        b'{"messages":["Hi"]}',
        b'{"messages":[{},null]}',
        b'{"messages":[[{}]]}',
    ],
)
def test_what_is_no_array_of_objects_is_refused(raw: bytes) -> None:
    """With the field's name."""
    refusal = read_messages(envelope(raw))
    assert refusal == Rejection(
        Reason.INVALID_MESSAGES, "The field 'messages' must be an array of one or more objects.", "messages"
    )
    assert refusal.status == 400


def test_messages_up_to_the_limit_are_read() -> None:
    """One more is refused."""
    raw = b'{"messages":[%b]}'
    assert len(elements(raw % b",".join([b"{}"] * MAX_MESSAGES))) == MAX_MESSAGES
    refusal = read_messages(envelope(raw % b",".join([b"{}"] * (MAX_MESSAGES + 1))))
    assert isinstance(refusal, Rejection)
    assert (refusal.reason, refusal.param) == (Reason.INVALID_MESSAGES, "messages")


def test_deep_messages_never_raise() -> None:
    """800 levels are read; 1,022, which an envelope may have, may be too deep for this version of Python."""
    assert elements(b'{"messages":[%b]}' % _nested(800)) == (_nested(800),)
    read = read_messages(envelope(b'{"messages":[%b]}' % _nested(1022)))
    too_deep = "The field 'messages' nests too deeply for a session."
    assert read in ((_nested(1022),), Rejection(Reason.INVALID_MESSAGES, too_deep, "messages"))


def test_a_turn_goes_behind_what_is_stored() -> None:
    """And is all that is new."""
    turn = fresh(texts(BYE), texts(HI, HELLO))
    assert turn == Fresh((), texts(BYE))
    assert conversation([HI, HELLO], BYE) == [HI, HELLO, BYE]


@pytest.mark.parametrize("instructions", [[BE_BRIEF], [BE_KIND], [BE_KIND, BE_BRIEF]])
def test_leading_instructions_go_in_front_and_are_for_this_turn(instructions: list[object]) -> None:
    """System and developer alike: in front of what is stored, and not stored themselves."""
    assert fresh(texts(*instructions, BYE), texts(HI, HELLO)) == Fresh(texts(*instructions), texts(BYE))
    assert conversation([HI, HELLO], *instructions, BYE) == [*instructions, HI, HELLO, BYE]


def test_later_instructions_stay_in_their_place() -> None:
    """Only those in front of everything else lead."""
    assert fresh(texts(BYE, BE_BRIEF), texts(HI, HELLO)) == Fresh((), texts(BYE, BE_BRIEF))


@pytest.mark.parametrize("stored", [[BE_BRIEF], [BE_BRIEF, BE_KIND]])
def test_instructions_that_the_conversation_begins_with_are_not_doubled(stored: list[object]) -> None:
    """As clients send their system prompt with every turn."""
    assert conversation([*stored, HI, HELLO], BE_BRIEF, BYE) == [*stored, HI, HELLO, BYE]


@pytest.mark.parametrize("leading", [[BE_KIND], [BE_KIND, BE_BRIEF], [BE_BRIEF, BE_KIND]])
def test_other_instructions_go_in_front_of_stored_ones(leading: list[object]) -> None:
    """Whole: which of them the stored ones replace is not ours to say."""
    assert conversation([BE_BRIEF, HI, HELLO], *leading, BYE) == [*leading, BE_BRIEF, HI, HELLO, BYE]


@pytest.mark.parametrize("leading", [[BE_BRIEF], [], [BE_KIND]])
def test_a_repeated_conversation_is_not_doubled(leading: list[object]) -> None:
    """Whatever instructions stand in front of it."""
    assert fresh(texts(*leading, HI, HELLO, BYE), texts(BE_BRIEF, HI, HELLO)).new == texts(BYE)


@pytest.mark.parametrize(
    "history",
    [[HI, BYE], [HI, message("Howdy!", "assistant"), BYE], [HELLO, HI, BYE], [message("Hey"), HELLO, BYE]],
    ids=["shorter", "another answer", "another order", "another question"],
)
def test_shorter_and_other_histories_are_new(history: list[object]) -> None:
    """Nothing that the client sent is lost."""
    assert conversation([HI, HELLO], *history) == [HI, HELLO, *history]


@pytest.mark.parametrize(
    "again",
    [
        b'{"content":"Hello!","role":"assistant"}',
        b'{ "role": "assistant" ,\n"content": "Hell\\u006f!" }',
        b'{"role":"assistant","content":"Hello!","refusal":null,"annotations":[],"audio":null,"function_call":null,'
        b'"tool_calls":[],"reasoning":"They greet me."}',
    ],
)
def test_a_repeated_answer_is_known_by_what_is_stored_of_it(again: bytes) -> None:
    """Clients send an answer back in words of their own, and with fields that are not stored."""
    hi, bye = texts(HI, BYE)
    assert fresh((hi, again, bye), texts(HI, HELLO)).new == (bye,)


@pytest.mark.parametrize(
    "again",
    [
        message("hello!", "assistant"),
        message("Hello!", "user"),
        message("Hello!", "assistant", tool_calls=[{"id": "c1"}]),
        message("Hello!", "assistant", refusal="No."),
        message([{"type": "text", "text": "Hello!"}], "assistant"),
    ],
)
def test_another_answer_is_not_the_stored_one(again: object) -> None:
    """Its content, role, calls and refusal count."""
    assert fresh(texts(HI, again, BYE), texts(HI, HELLO)).new == texts(HI, again, BYE)


def test_every_field_of_a_question_counts() -> None:
    """Names too, but for empty fields."""
    named, empty = message("Hi", name="Ann"), message("Hi", name=None)
    assert fresh(texts(named, HELLO, BYE), texts(HI, HELLO)).new == texts(named, HELLO, BYE)
    assert fresh(texts(empty, HELLO, BYE), texts(HI, HELLO)).new == texts(BYE)


@pytest.mark.parametrize("odd", [rb'{"role":"user","content":"\ud800"}', _nested(300), _nested(900)])
def test_an_odd_message_is_repeated_by_its_bytes_alone(odd: bytes) -> None:
    """What no canonical form exists of is the same only when it is written the same."""
    bye, hello = texts(BYE, HELLO)
    assert fresh((odd, hello, bye), (odd, hello)).new == (bye,)
    spaced = odd.replace(b":", b": ", 1)
    assert fresh((spaced, hello, bye), (odd, hello)).new == (spaced, hello, bye)


def test_an_instruction_with_a_lone_surrogate_leads() -> None:
    """Its role can be read all the same."""
    odd = rb'{"content":"\ud800","role":"system"}'
    assert fresh((odd, *texts(BYE)), texts(HI, HELLO)) == Fresh((odd,), texts(BYE))


@pytest.mark.parametrize("role", [b"null", b"5", b'["system"]', b'"SYSTEM"', b'"system "'])
def test_an_odd_role_is_no_instruction(role: bytes) -> None:
    """The message is new, and the engine may judge it."""
    odd = b'{"role":' + role + b"}"
    assert fresh((odd,), texts(HI, HELLO)) == Fresh((), (odd,))


@pytest.mark.parametrize("turn", [[HI, HELLO], [BE_BRIEF, HI, HELLO], [BE_BRIEF], [BE_KIND, BE_BRIEF]])
def test_a_turn_without_a_new_message_is_refused(turn: list[object]) -> None:
    """A repetition of the conversation, and instructions alone."""
    refusal = fresh_messages(texts(*turn), texts(HI, HELLO))
    assert refusal == Rejection(Reason.INVALID_MESSAGES, "The request adds no message to the session.", "messages")


def test_every_byte_outside_of_the_messages_stays() -> None:
    """White space, numbers, escapes, order and repeated fields that do not decide; stored messages keep their bytes."""
    raw = rb' { "x":1.0, "messages" : [ {"role":"user", "content":"\u0042ye"} ] , "x":"\ud800","model":"m" } '
    stored = (rb'{"role": "user", "content": "H\u0069"}', b'{"role":"assistant","content":"1e5"}')
    assert sent(raw, stored) == (
        rb' { "x":1.0, "messages" : [{"role": "user", "content": "H\u0069"},{"role":"assistant","content":"1e5"},'
        rb'{"role":"user", "content":"\u0042ye"}] , "x":"\ud800","model":"m" } '
    )


def test_a_repeated_conversation_goes_out_as_it_is_stored() -> None:
    """So that the engine's cache finds it."""
    stored = texts(HI, HELLO)
    raw = b'{"messages":[{"content":"Hi","role":"user"},{"content":"Hello!","role":"assistant"},{"role":"user"}]}'
    assert sent(raw, stored) == b'{"messages":[' + b",".join((*stored, b'{"role":"user"}')) + b"]}"


def test_without_stored_messages_the_body_is_as_it_came() -> None:
    """A first turn is not rewritten."""
    raw = b'{"messages":[ {"role":"system"} , {"role":"user"} ]}'
    assert hydrated(envelope(raw), (), Fresh((), elements(raw))) == raw
