"""The quality gate's judgement of an answer, as far as its text alone tells. CORE: no I/O.

Whether a text is JSON and fits a schema is judged elsewhere, under a time limit.
"""
