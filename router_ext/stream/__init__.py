"""One ext_proc stream as a state machine: Envoy's messages in as events, effects out. No I/O, no protobuf."""
