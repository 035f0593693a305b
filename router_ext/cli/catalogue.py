"""Every command of ``router-ext``, by name. The module of one is imported only once somebody asks for the command."""

from typing import Final

from router_ext.cli.parser import Command

COMMANDS: Final = (
    Command("init", "write a configuration for what runs on this machine", "router_ext.cli.init"),
    Command("check-config", "check a configuration file", "router_ext.cli.check_config"),
    Command("envoy-config", "write Envoy's configuration", "router_ext.cli.envoy_config"),
    Command("serve", "run the external processor", "router_ext.cli.serve"),
    Command("worker", "one process of `serve --workers`, which starts it", "router_ext.cli.worker"),
    Command("doctor", "check how Envoy and the router work together", "router_ext.cli.doctor"),
    Command("explain", "say what would become of a request, and why", "router_ext.cli.explain"),
    Command("tail", "show live decisions of a running router", "router_ext.cli.tail"),
    Command("top", "show the running router as a table that refreshes", "router_ext.cli.top.command"),
    Command("replay", "make recorded decisions again under another configuration", "router_ext.cli.replay"),
    Command("mcp", "tools for assistants, on standard input and output", "router_ext.cli.mcp"),
    Command("dpo", "check and convert files of preference pairs", "router_ext.cli.dpo"),
    Command("demo", "run the whole stack on this machine", "router_ext.cli.demo"),
    Command("sim-backend", "run a simulated vLLM server", "router_ext.demo.sim.command"),
    Command("completion", "print the script that completes commands in a shell", "router_ext.cli.completion"),
)
