"""What of an answer's text is to be parsed as JSON."""

import pytest

from router_ext.gate.text import after_thinking, json_text

VALUE = '{"ok": true}'

# Thinking


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("", ""),
        (" x\n", " x\n"),
        ("<think>a</think>x", "x"),
        ("\n <think>\na\n</think>\n\nx", "\n\nx"),
        ("<think></think>", ""),
        ("<think>a</think>x</think>y", "x</think>y"),
        ("x<think>a</think>", "x<think>a</think>"),
        ("<thinking>a</thinking>x", "<thinking>a</thinking>x"),
        ("a</think>x", "a</think>x"),
    ],
)
def test_a_leading_block_of_thought_is_skipped(text: str, after: str) -> None:
    """Up to its first end; any other text stays."""
    assert after_thinking(text) == after


@pytest.mark.parametrize("text", ["<think>", "\n<think>a", "<think>a</think", "<think>{}"])
def test_a_thought_without_an_end_leaves_no_answer(text: str) -> None:
    """Its JSON is not looked for."""
    assert after_thinking(text) is None
    assert json_text(text) == text


# Fences


@pytest.mark.parametrize("text", ["", VALUE, f"\n{VALUE} ", f"Here: {VALUE}", f"{VALUE} Done.", "`x`", f"``{VALUE}``"])
def test_a_text_without_fences_stays(text: str) -> None:
    """What stands around a value is not taken away."""
    assert json_text(text) == text


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{VALUE}\n```",
        f"```JSON\n{VALUE}\n```",
        f"~~~json\n{VALUE}\n~~~",
        f"```` json title=x\n{VALUE}\n````",
        f"```json\n{VALUE}\n`````\t",
        f"```json\r\n{VALUE}\r\n```\r\n",
        f"  ```json\n  {VALUE}\n  ```",
        f"\t```json\n{VALUE}\n        ```",
        f"```json\n{VALUE}\n",
        f"```json\n{VALUE}",
        f"Here:\n```json\n{VALUE}\n```\nDone.",
        f"Here: ```\n```json\n{VALUE}\n```",
        f"<think>\n```json\n[1]\n```\n</think>\n```json\n{VALUE}\n```",
    ],
)
def test_a_block_that_is_tagged_json_counts(text: str) -> None:
    """Of either mark, in any case, indented, with CRLF, without an end, and with prose around it."""
    assert json_text(text).strip() == VALUE


@pytest.mark.parametrize("tag", ["", "python", "json5", "jsonc", "{.json}", "x json"])
def test_a_block_with_another_tag_counts_when_it_is_all(tag: str) -> None:
    """White space may stand around it, nothing else."""
    block = f"```{tag}\n{VALUE}\n```"
    assert json_text(block).strip() == json_text(f"\n \n{block}\r\n\n").strip() == VALUE
    assert json_text(f"<think>x</think>\n{block}").strip() == VALUE
    for text in (f"Here:\n{block}", f"{block}\nDone.", f"{block}\n{block}"):
        assert json_text(text) == text


def test_of_several_blocks_the_last_one_tagged_json_counts() -> None:
    """Wherever the others stand."""
    blocks = ["```json\n[1]\n```", f"```json\n{VALUE}\n```", "```bash\necho\n```"]
    assert json_text("\n".join(blocks)).strip() == VALUE
    assert json_text("\n".join(reversed(blocks))).strip() == "[1]"
    assert json_text("```json\n[1]\n```\n```json\n" + VALUE).strip() == VALUE


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        (f"````\n```json\n{VALUE}\n```\n````", f"\n```json\n{VALUE}\n```"),
        (f"~~~\n```json\n{VALUE}\n```\n~~~", f"\n```json\n{VALUE}\n```"),
        (f"```\n```json\n{VALUE}\n```", f"\n```json\n{VALUE}"),
        ("```json\n[\n``\n```", "\n[\n``"),
        ("```json\n[\n~~~\n```", "\n[\n~~~"),
        ("```json\n``` x\n```", "\n``` x"),
        ("````json\n```\n````", "\n```"),
    ],
)
def test_a_block_ends_at_a_fence_like_its_own(text: str, inner: str) -> None:
    """Of the same mark, as long at least, alone in its line; a block within a block is its text."""
    assert json_text(text) == inner


@pytest.mark.parametrize(
    "text", [f"```json {VALUE}```", "```json`\n[]\n```x", f'{{"a":"```json\\n{VALUE}\\n```"}}', f"> ```json\n> {VALUE}"]
)
def test_backticks_within_a_line_are_no_fence(text: str) -> None:
    """A fence begins a line, and one of backticks has no more of them."""
    assert json_text(text) == text


def test_an_empty_block_is_an_empty_text() -> None:
    """Which is no JSON."""
    assert json_text("```json\n```") == json_text("```json") == json_text("```") == ""
