"""Money over time: the days that it is counted by, and what a day will have cost. CORE: no I/O, no clock."""
