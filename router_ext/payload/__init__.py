"""Request bodies: read what routing needs, change single fields in place, leave every other byte as it came.

CORE: no I/O. Everything here is linear in the size of the body and safe on hostile input.
"""
