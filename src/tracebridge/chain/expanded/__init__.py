"""Chains whose states remember more than the category of their step: contexts, clocks, hidden phases, classes of tasks.

They are finite absorbing chains over expanded states, so that all that is done with a chain is done with them too.
"""
