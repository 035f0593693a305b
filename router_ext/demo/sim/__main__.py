"""``python -m router_ext.demo.sim``: one simulated engine."""

import sys

from router_ext.demo.sim.command import run_sim

if __name__ == "__main__":
    sys.exit(run_sim(sys.argv[1:]))
