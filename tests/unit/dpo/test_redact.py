"""What is masked, and what looks like it and stays. Keys are made up."""

import json
import time

import pytest

from router_ext.dpo.redact import redacted

MASKED = [
    ("write to Jo.Doe+x@mail.example-corp.co.uk.", "write to [EMAIL]."),
    ("<a_b%c@h.io>,d@e.fr", "<[EMAIL]>,[EMAIL]"),
    ("mailto:a@xn--bcher-kva.example", "mailto:[EMAIL]"),
    ("+49 (0)30 123456-7 or +14155550123", "[PHONE] or [PHONE]"),
    ("+12345678 ", "[PHONE] "),
    ("(415) 555-0123, 415-555-0123, 415.555.0123", "[PHONE], [PHONE], [PHONE]"),
    ("1-415-555-0123", "[PHONE]"),
    ("020 7946 0958; 01 23 45 67 89; 0171/1234567", "[PHONE]; [PHONE]; [PHONE]"),
    ("card 4111 1111 1111 1111 exp 12/26", "card [CARD] exp 12/26"),
    ("4111-1111-1111-1111 2024", "[CARD] 2024"),
    ("order 7 378282246310005.", "order 7 [CARD]."),
    ("4222222222222 and 6304000000000000000 x", "[CARD] and [CARD] x"),
    ("sk-proj-a1b2c3d4e5f6g7h8", "[KEY]"),
    ("key=sk-ant-api03-abcdefghij_K", "key=[KEY]"),
    ("AKIAABCDEFGHIJKLMNOP, ASIAABCDEFGHIJKLMN12", "[KEY], [KEY]"),
    ("ghp_" + "a1B2" * 9, "[KEY]"),
    ("github_pat_" + "a1B2_" * 5, "[KEY]"),
    ("glpat-" + "a1B2-" * 4, "[KEY]"),
    ("hf_" + "abc" * 10, "[KEY]"),
    ("xoxb-1234567890", "[KEY]"),
    ("AIza" + "a1B2_" * 7, "[KEY]"),
    ("eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.c2ln", "[KEY]"),
    ("Authorization: Bearer abc.def-123", "Authorization: Bearer [KEY]"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nafter", "[KEY]\nafter"),
    ("-----BEGIN PRIVATE KEY-----\nMIIE", "[KEY]"),
    ("password=hunter&user=jo", "password=[KEY]&user=jo"),
    ('DB_PASSWORD = "two words" # x', 'DB_PASSWORD = "[KEY]" # x'),
    ("password: hunter2", "password: [KEY]"),
    ("pwd: 'hunter'", "pwd: '[KEY]'"),
    ("api-key=abcd, client_secret=abcd, access_token=abcd", "api-key=[KEY], client_secret=[KEY], access_token=[KEY]"),
    ("postgres://jo:pw@db.example.com/x", "postgres://[KEY]@db.example.com/x"),
]

LEFT = [
    "jo@localhost, @jo, a@b, jo@1.2.3.4, x @ y.example",
    "4155550123 and 0301234567",
    "+1234567",
    "+1234567890123456",
    "2024-01-15, 15.01.2024, 05-06-2024 10:30, 05/06/2024 12 items",
    "192.168.100.100, 3.14159265358979",
    "12-415-555-0123, 415-555-01234, 415-5550123",
    "550e8400-e29b-41d4-a716-446655440000",
    "4111 1111 1111 1112",
    "0.4111111111111111, 4111111111111111.5, 4111111111111111px",
    "1700000000000000, 422222222222, 41111111111111111111",
    "1234567812345670",
    "sk-learn-extensions-and-more, sk-a1b2c3, task-a1b2c3d4e5f6g7h8i9",
    "AKIAABCDEFGHIJKLMNO, AKIAABCDEFGHIJKLMNOPQ, xAKIAABCDEFGHIJKLMNOP",
    "ghp_" + "a" * 35,
    "eyJhbGciOiJub25lIn0",
    "the bearer of bad tidings; a bearer certificate; Bearer abc123",
    "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
    "password: string; enter your password: then go; password=abc",
    "if password == expected: secrets: 1 of 4",
    "https://host.example:8080/a@b",
]


@pytest.mark.parametrize(("text", "masked"), MASKED)
def test_personal_data_and_credentials_are_masked(text: str, masked: str) -> None:
    """Each by the mask of its kind, and nothing around it."""
    assert redacted(text) == masked


@pytest.mark.parametrize("text", LEFT)
def test_what_only_looks_like_them_is_left(text: str) -> None:
    """Too short, too long, a wrong check digit, no separators, or a word that only begins alike."""
    assert redacted(text) == text


@pytest.mark.parametrize("text", [masked for _, masked in MASKED])
def test_masked_text_stays_as_it_is(text: str) -> None:
    """Masking twice is masking once."""
    assert redacted(text) == text


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ('{"card": 4111111111111111, "n": 7}', '{"card": "[CARD]", "n": 7}'),
        ('{"x": 0.4111111111111111}', '{"x": 0.4111111111111111}'),
        ('["line\\nfoo@b.example"]', '["line\\n[EMAIL]"]'),
        ('{"a@b.example": {"k":  1.50}}', '{"[EMAIL]": {"k":  1.50}}'),
        ('{"dbPassword": "x", "pwd" : 12, "apiKey":"y"}', '{"dbPassword": "[KEY]", "pwd" : "[KEY]", "apiKey":"[KEY]"}'),
        ('{"password": {"type": "string"}, "secret_of": "x"}', '{"password": {"type": "string"}, "secret_of": "x"}'),
        ('[{"arguments": "{\\"to\\": \\"a@b.example\\"}"}]', '[{"arguments": "{\\"to\\": \\"[EMAIL]\\"}"}]'),
        ('Sure:\n```json\n{"card": 4111111111111111}\n```\nDone.', 'Sure:\n```json\n{"card": "[CARD]"}\n```\nDone.'),
    ],
)  # fmt: skip
def test_json_stays_json(text: str, masked: str) -> None:
    """A masked number is a string, escapes stay whole, and what holds nothing to mask stays as it was written."""
    assert redacted(text) == masked


def test_json_that_is_masked_can_be_read() -> None:
    """The same keys, also deep inside of strings."""
    inner = json.dumps({"phone": "+14155550123", "id": 4111111111111111})
    text = json.dumps({"calls": [{"arguments": json.dumps({"again": inner})}]}, indent=2)
    again = json.loads(json.loads(json.loads(redacted(text))["calls"][0]["arguments"])["again"])
    assert again == {"phone": "[PHONE]", "id": "[CARD]"}


def test_a_long_text_is_masked_like_a_short_one() -> None:
    """Wherever in it: it is not cut within a line."""
    lines = [f"{'x' * (number % 90)} a{number}@b.example, call 415-555-0123" for number in range(5000)]
    masked = [f"{'x' * (number % 90)} [EMAIL], call [PHONE]" for number in range(5000)]
    assert redacted("\n".join(lines)) == "\n".join(masked)
    assert redacted(" ".join(lines)) == " ".join(masked)


@pytest.mark.parametrize(
    "piece",
    [
        "a", "a.", "a@", "a@b.", "1", "1 ", "4111 ", "+1", "0 ", "555-", "sk-", "eyJ", "eyJ.", "bearer ", "://a:",
        "-----BEGIN PRIVATE KEY-----", "password:", "password=", 'password="', '["', "[", '"', "\\", "```\n", " ", "\n",
    ],
)  # fmt: skip
def test_no_text_makes_a_pattern_slow(piece: str) -> None:
    """Time grows with the text, not with its square: that would be minutes for 300 KB."""
    began = time.process_time()
    redacted(piece * (300_000 // len(piece)))
    assert time.process_time() - began < 5
