"""The checks, a module a topic. Each takes a state and tells what is wrong with it."""
