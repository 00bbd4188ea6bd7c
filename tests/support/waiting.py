"""Waiting for what will happen."""

import time


def soon(condition, within=60.0):
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, f"did not happen within {within:g} s"
        time.sleep(0.005)
