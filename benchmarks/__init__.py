"""Benchmarks: each compares with a baseline in the same run and prints its figures; none decides a test."""
