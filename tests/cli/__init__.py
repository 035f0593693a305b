"""The command line as a process of its own, in real shells, pipes and terminals, against real servers."""
