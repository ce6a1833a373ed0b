"""Runs while they go on: what a prefix says about the end of a run, and whether runs still come from the chain."""
