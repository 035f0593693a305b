"""Problems: all at once, each with its place and a suggestion, none with a credential."""

from pathlib import Path

import pytest

from router_ext.config.loader import load
from router_ext.config.problem import ConfigError
from tests.unit.config.samples import MINIMAL, config, refusal, refused, with_backend, with_server

WRONG_IN_MANY_PLACES = """\
server:
  prot: 8050
  egress_port: 8052
  default_timeout: .nan
backends:
  - {name: a, url: "http://bob:hunter2@127.0.0.1", typ: vllm, model_name: 3.1}
  - {name: a, url: "http://h", type: vlm, model_name: m, api_key: "${KEY}"}
rules:
  - {name: r, backends: [a, bb]}
  - {name: r, backends: []}
"""


def test_all_problems_come_in_one_message_sorted_by_line() -> None:
    """Readers, cross references and duplicates report together: one line each, with file, line and path."""
    assert refusal(WRONG_IN_MANY_PLACES, {"ROUTER_PORT": "0"}).split("\n") == [
        "env ROUTER_PORT: expected a whole number from 1 to 65535 in environment variable ROUTER_PORT",
        "router.yaml:2: server.prot: unknown key; did you mean 'port'?",
        "router.yaml:3: server.egress_port: the same port as server.admin_port",
        "router.yaml:4: server.default_timeout: "
        "expected a duration like 30s, 5m, 1h30m or 250ms, from 1ms to 31536000s, got .nan",
        "router.yaml:6: backends[0].typ: unknown key; did you mean 'type'?",
        "router.yaml:6: backends[0].url: the URL must hold no user name or password: use api_key",
        "router.yaml:6: backends[0].type: is required",
        "router.yaml:6: backends[0].model_name: expected text, got a number or a flag: put it in quotes",
        "router.yaml:7: backends[1].name: duplicate backend name 'a' (first on line 6)",
        "router.yaml:7: backends[1].type: expected one of vllm, sglang, llamacpp, openai, gemini, ollama, anthropic, "
        "got 'vlm'; did you mean 'vllm'?",
        "router.yaml:7: backends[1].api_key: the key holds '${', which is not replaced: "
        "write env:NAME as the whole value",
        "router.yaml:9: rules[0].backends[1]: unknown backend 'bb'; known: a",
        "router.yaml:10: rules[1].name: duplicate rule name 'r' (first on line 9)",
        "router.yaml:10: rules[1].backends: must not be empty",
    ]


def test_a_backend_with_other_faults_is_no_unknown_backend() -> None:
    """A wrong URL or an unusable name is one problem, not one more for every rule that names the backend."""
    text = MINIMAL.replace("http://", "ftp://") + "rules: [{name: r, backends: [a]}]\n"
    assert list(refused(text)) == ["backends[0].url"]
    text = MINIMAL.replace("name: a", "name: a b") + "rules: [{name: r, backends: [a b]}]\n"
    assert list(refused(text)) == ["backends[0].name"]


@pytest.mark.parametrize(
    ("section", "path"),
    [
        ("defaults: {fallback_chain: [beta]}", "defaults.fallback_chain[0]"),
        ("rules: [{name: r, backends: [beta]}]", "rules[0].backends[0]"),
        ("budgets: {s: {daily_limit_usd: 1, action: downgrade, downgrade_target: beta}}", "budgets.s.downgrade_target"),
        ("quality_gate: {fallback_backend: beta}", "quality_gate.fallback_backend"),
        ("ab_tests: [{name: t, match: {}, variant_a: beta, variant_b: alpha, split_pct: 1}]", "ab_tests[0].variant_a"),
        ("ab_tests: [{name: t, match: {}, variant_a: alpha, variant_b: beta, split_pct: 1}]", "ab_tests[0].variant_b"),
    ],
)
def test_a_reference_must_name_a_backend(section: str, path: str) -> None:
    """Every place that names a backend is checked, with the closest name as a suggestion."""
    text = MINIMAL.replace("name: a,", "name: alpha,") + section
    assert refused(text)[path] == "unknown backend 'beta'; known: alpha"
    assert refused(text.replace("beta", "alpah"))[path] == "unknown backend 'alpah'; did you mean 'alpha'?"


def test_served_names_may_repeat_between_backends_but_names_may_not() -> None:
    """Two backends can serve one model; two A/B tests cannot have one name."""
    second = MINIMAL + MINIMAL.split("\n")[1].replace("name: a", "name: b") + "\n"
    assert len(config(second).backends) == 2
    test = "{name: t, match: {}, variant_a: a, variant_b: a, split_pct: 1}"
    assert refused(f"{MINIMAL}ab_tests: [{test}, {test}]\n") == {
        "ab_tests[1].name": "duplicate A/B test name 't' (first on line 3)"
    }


@pytest.mark.parametrize(
    "setting",
    [
        "processor_address: '127.0.0.1:8050'",
        "port: 8051",
        "port: 8052",
        "port: 8053",
        "egress_port: 9000, admin_port: 9000",
    ],
)
def test_no_two_listeners_share_a_port(setting: str) -> None:
    """Ports must differ from each other, from defaults that are not written and from the processor's TCP port."""
    (message,) = refused(with_server(setting)).values()
    assert message.startswith("the same port as server.")


def test_a_key_never_reaches_a_message() -> None:
    """Neither a key with a wrong character, nor one under a misspelt or squeezed key, nor one from a variable."""
    hidden = "hunter2"
    texts = [
        with_backend(f"api_key: '{hidden} x'"),
        with_backend(f"api_key: [{hidden}]"),
        with_backend(f"apikey: {hidden}"),
        with_backend(f"api_key:{hidden}"),
        with_backend("api_key: env:KEY"),
        with_backend("max_concurrent: env:KEY"),
        MINIMAL.replace("type: vllm", "type: env:KEY"),
    ]
    assert not [text for text in texts if hidden in refusal(text, {"KEY": f"{hidden}\n"})]


def test_a_message_holds_no_control_character() -> None:
    """Quoted text is escaped and cut, so that one problem is one line of a log."""
    problems = refused(MINIMAL.replace("type: vllm", 'type: "' + "\\n\\e" * 200 + '"'))
    assert problems["backends[0].type"].isprintable()
    assert len(problems["backends[0].type"]) < 300


@pytest.mark.parametrize(
    ("name", "message"),
    [("missing.yaml", "missing.yaml: cannot be read: No such file"), (".", ": cannot be read: Is a directory")],
)
def test_a_file_that_cannot_be_read_is_a_problem(tmp_path: Path, name: str, message: str) -> None:
    """The system's reason is given."""
    with pytest.raises(ConfigError) as error:
        load(tmp_path / name, {})
    assert message in str(error.value)
