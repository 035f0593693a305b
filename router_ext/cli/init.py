"""``router-ext init``: a configuration for what runs on this machine."""

import argparse
import asyncio
import os
import re
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from router_ext.cli.configuration import add_json_argument, default_config
from router_ext.cli.failure import EXIT_BAD_CALL, EXIT_WRONG, CommandError, print_json
from router_ext.cli.starting.document import configuration
from router_ext.cli.starting.engines import Engine, Place
from router_ext.cli.starting.providers import Key, keys_in
from router_ext.cli.starting.scan import PORTS, scan
from router_ext.config.loader import parse
from router_ext.config.sections import ENVOY_DIR
from router_ext.config.url import is_host

_PLACE: Final = re.compile(r"(?:\[([^\]]*)\]|([^:\[\]]*))(?::([0-9]{1,5}))?")
_HERE: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Found:
    """Engines, keys, and the variables that could hold a key and do not."""

    engines: Sequence[Engine]
    keys: Sequence[Key]
    unusable: Sequence[str]

    @property
    def is_something(self) -> bool:
        """True when there is a backend to write."""
        return bool(self.keys) or any(engine.models for engine in self.engines)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where to look, and where to write."""
    parser.add_argument(
        "--out",
        type=Path,
        default=default_config(),
        metavar="FILE",
        help="file to write (default: $CONFIG_PATH, else router.yaml)",
    )
    parser.add_argument("--force", action="store_true", help="write over a file that is there")
    parser.add_argument(
        "--scan",
        action="append",
        default=[],
        type=places,
        metavar="HOST[:PORT]",
        help="look there too, without a port at all the usual ones (repeatable)",
    )
    add_json_argument(parser, "print one JSON object: file, backends, engines, keys, notes, next")


def places(text: str) -> list[Place]:
    """The places that ``HOST[:PORT]`` stands for; IPv6 addresses are in brackets. Raises ArgumentTypeError."""
    found = _PLACE.fullmatch(text)
    host = (found[1] or found[2]) if found else ""
    if not found or not host or not is_host(host) or (":" in host) != bool(found[1]):
        raise argparse.ArgumentTypeError("expected HOST or HOST:PORT, an IPv6 address in brackets")
    if found[3] is None:
        return [Place(host, port) for port in PORTS]
    if not 1 <= int(found[3]) <= 65535:
        raise argparse.ArgumentTypeError("the port must be from 1 to 65535")
    return [Place(host, int(found[3]))]


def main(args: argparse.Namespace) -> int:
    """0 with what was found, 1 with an example, when nothing was found. Raises CommandError and OSError."""
    _refuse_existing(args)
    here = [Place(_HERE, port) for port in PORTS]
    found = look(dict.fromkeys([*here, *(place for some in args.scan for place in some)]), os.environ)
    text = configuration(found.engines, found.keys)
    backends = _backends(text, args.out)
    write(args.out, text, args.force)
    if args.json:
        print_json(_report(args.out, found, backends))
    else:
        print("\n".join(_lines(args.out, found, backends)))
    return 0 if found.is_something else EXIT_WRONG


def look(where: Mapping[Place, object], environ: Mapping[str, str]) -> Found:
    """What is at these places and in the environment."""
    engines = asyncio.run(scan(list(where)))
    return Found(engines, *keys_in(environ))


def write(target: Path, text: str, force: bool) -> None:
    """Writes the file; what is there already stays unless ``force``. Raises CommandError and OSError."""
    if force:
        _replace(target, text)
        return
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise _exists(target) from None


def _replace(target: Path, text: str) -> None:
    """At once: a router that reads the file meanwhile finds the old one or the whole new one."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).chmod(0o644)
        os.replace(name, target)
    finally:
        Path(name).unlink(missing_ok=True)


def _refuse_existing(args: argparse.Namespace) -> None:
    if not args.force and os.path.lexists(args.out):
        raise _exists(args.out)


def _exists(target: Path) -> CommandError:
    return CommandError(f"{target} exists: --force writes over it", EXIT_BAD_CALL, "exists")


def _backends(text: str, target: Path) -> list[dict[str, object]]:
    """What a router reads from it. Raises ConfigError, for what the environment says that does not go with it."""
    config = parse(text, target.name, target.parent, os.environ).config
    return [
        {"name": backend.name, "type": backend.type.value, "url": str(backend.endpoint), "model": backend.model_name}
        for backend in config.backends
    ]


def _report(target: Path, found: Found, backends: Sequence[dict[str, object]]) -> dict[str, object]:
    engines = [
        {"url": f"http://{engine.place}", "type": engine.type.value, "models": [model.name for model in engine.models]}
        for engine in found.engines
    ]
    keys = [key.variable for key in found.keys]
    notes, following = list(_notes(found)), _next(target)
    return {
        "file": str(target),
        "backends": backends,
        "engines": engines,
        "keys": keys,
        "notes": notes,
        "next": following,
    }


def _lines(target: Path, found: Found, backends: Sequence[dict[str, object]]) -> Iterator[str]:
    for engine in (engine for engine in found.engines if engine.models):
        yield f"found {engine.type.value} at http://{engine.place}: {', '.join(model.name for model in engine.models)}"
    for key in found.keys:
        yield f"found a key of {key.provider.name} in {key.variable}"
    yield from _notes(found)
    yield f"wrote {target}: {len(backends)} backend{'s' if len(backends) > 1 else ''}"
    yield "next:"
    yield from (f"  {command}" for command in _next(target))


def _notes(found: Found) -> Iterator[str]:
    if not found.is_something:
        yield "found no engine and no key: the file holds a backend as an example, for you to edit"
    for engine in found.engines:
        if engine.wants_key:
            yield f"{engine.type.value} at http://{engine.place} wants a key: it stands in the file as a comment"
        if engine.left_out:
            why = "too many, or not fit for a configuration"
            yield f"{engine.left_out} names of http://{engine.place} are left out: {why}"
    for variable in found.unusable:
        yield f"{variable} is set, but its value can be no key: left out"


def _next(target: Path) -> list[str]:
    # Here, since its package takes two thirds of a second to import.
    from router_ext.envoygen.names import BOOTSTRAP_FILE

    file = shlex.quote(str(target))
    commands = [f"router-ext {command} {file}" for command in ("check-config", "envoy-config", "serve")]
    return [*commands, f"envoy -c {shlex.quote(str(target.parent / ENVOY_DIR / BOOTSTRAP_FILE))}"]
