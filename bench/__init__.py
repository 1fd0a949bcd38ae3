"""Benchmarks: each figure against the thing it is compared with, measured in turn in one run."""
