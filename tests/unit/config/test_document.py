"""The YAML tree: lines, repeated keys, and what a file must not be."""

import pytest

from router_ext.config.document import MAX_DEPTH, MAX_NODES, Scalar, Sequence, compose
from tests.unit.config.samples import MINIMAL, refusal


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8050", 8050),
        ("-1", -1),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("true", True),
        ("~", None),
        ("on", "on"),
        ("yes", "yes"),
        ("0123", "0123"),
        ("1:30", "1:30"),
        ("1_000", "1_000"),
        ("2024-01-01", "2024-01-01"),
        ("'8050'", "8050"),
        ("'true'", "true"),
    ],
)
def test_scalars_follow_the_core_schema_of_yaml_1_2(text: str, value: object) -> None:
    """Words of YAML 1.1 such as ``on`` and base-60 numbers stay text; quotes always make text."""
    node = compose(f"key: {text}", "f").root.entries["key"]
    assert isinstance(node, Scalar)
    assert (node.value, type(node.value)) == (value, type(value))


def test_every_node_knows_its_line_and_path() -> None:
    """Lines start at 1, list items are numbered from 0."""
    document = compose("a:\n  - b: 1\n  - b: 2\n", "f")
    node = document.root.entries["a"]
    assert isinstance(node, Sequence)
    assert document.lines == {"": 1, "a": 2, "a[0]": 2, "a[0].b": 2, "a[1]": 3, "a[1].b": 3}


def test_a_repeated_key_is_reported_with_both_lines() -> None:
    """The second of two equal keys is a problem, since most parsers let it silently win."""
    assert refusal(MINIMAL + "defaults: {}\ndefaults: {}\n") == (
        "router.yaml:4: key 'defaults' is repeated (first on line 3)"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "router.yaml: the file is empty"),
        ("# only a comment\n", "router.yaml: the file is empty"),
        ("- a\n- b\n", "router.yaml:1: expected keys with values at the top level"),
        ("\nhello\n", "router.yaml:2: expected keys with values at the top level"),
        ("a: 1\n---\nb: 2\n", "router.yaml:2: not valid YAML: expected a single document in the stream, "),
        ("a: [1\nb: 2\n", "router.yaml:2: not valid YAML: while parsing a flow sequence, "),
        ("a:\n\tb: 1\n", "router.yaml:2: not valid YAML: while scanning for the next token, "),
        ("a: 1\nb: \x00\n", "router.yaml:2: not valid YAML: character U+0000 is not allowed"),
        ('a: "\\U00110000"\n', "router.yaml:1: not valid YAML: a number or an escape is out of range"),
        ("a: &x 1\nb: *x\n", "router.yaml:1: anchors and aliases are not supported"),
        ("a: 1\nb: *x\n", "router.yaml:2: anchors and aliases are not supported"),
        ("a: !!python/name:os.system x\n", "router.yaml:1: tags are not supported"),
        ("a: !!int '1'\n", "router.yaml:1: tags are not supported"),
        (b"a: 1\nb: \xff\n", "router.yaml:2: the file is not UTF-8"),
        (b"#" * (4 * 2**20 + 1), "router.yaml: the file is larger than 4 MiB"),
    ],
)
def test_a_file_that_is_no_plain_yaml_mapping_gives_one_problem(text: str | bytes, message: str) -> None:
    """Broken, empty, foreign and dangerous files are each refused with one line that says where."""
    found = refusal(text)
    assert found.startswith(message)
    assert "\n" not in found


def test_a_syntax_error_does_not_quote_the_line() -> None:
    """The broken line may hold a key."""
    assert "hunter2" not in refusal("api_key: [hunter2\nb: 1\n")


def test_nesting_is_bounded() -> None:
    """24 levels are read, one more is refused."""
    compose("a: " + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1), "f")
    assert "nested deeper than 24 levels" in refusal("a: " + "[" * MAX_DEPTH + "]" * MAX_DEPTH)


def test_the_number_of_values_is_bounded() -> None:
    """More than 100,000 values are refused."""
    assert "more than 100000 values" in refusal("a: [" + "1," * MAX_NODES + "]")


def test_a_key_that_is_no_name_is_a_problem() -> None:
    """Lists and mappings cannot be keys."""
    assert "router.yaml:3: a key must be a name" in refusal(MINIMAL + "[a]: 1\n")
