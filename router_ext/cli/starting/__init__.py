"""A first configuration, of what runs on this machine. Nothing that an engine answers is trusted."""
