"""A discrete-event simulation of a cluster of engines around the real routing core: no network, no clock."""
