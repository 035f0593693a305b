"""Is Envoy wired as the router needs it? State is read once, pure checks judge it, and a catalogue lists them.

Nothing is changed: only the read-only pages of both admin interfaces are asked for.
"""
