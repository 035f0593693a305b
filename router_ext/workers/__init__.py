"""Several processes of one router on one machine, and the supervisor that makes them look like one."""
