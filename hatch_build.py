"""Build hook: compiles the project's own contract under ``proto/`` into ``router_ext/v1``."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompileProto(BuildHookInterface):  # type: ignore[type-arg]
    """Runs protoc before every build, editable installs included."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Writes ``*_pb2.py``, ``*_pb2_grpc.py`` and ``*_pb2.pyi`` beside the hand-written package."""
        import grpc_tools
        from grpc_tools import protoc

        root = Path(self.root)
        well_known = Path(grpc_tools.__file__).parent / "_proto"
        sources = sorted(str(path.relative_to(root / "proto")) for path in (root / "proto").rglob("*.proto"))
        arguments = [f"--proto_path={folder}" for folder in (root / "proto", well_known)]
        arguments += [f"--{kind}_out={root}" for kind in ("python", "pyi", "grpc_python")]
        if protoc.main(["protoc", *arguments, *sources]) != 0:
            raise RuntimeError("protoc refused proto/")
