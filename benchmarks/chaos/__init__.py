"""Requests at a steady rate while one backend after the other fails: how many does a client lose?"""
