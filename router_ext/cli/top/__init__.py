"""``router-ext top``: the running router as a table that refreshes."""
