"""Linear temporal logic: probabilities of path formulas, conditional probabilities, and rewards that hang on them."""

from tracebridge.closedform.ltl.probability import conditional_probability, ltl_probability
from tracebridge.closedform.ltl.reward import conditional_reward, satisfied_prefix_reward

__all__ = ["conditional_probability", "conditional_reward", "ltl_probability", "satisfied_prefix_reward"]
