"""The command line: what is printed and returned, without a network."""
