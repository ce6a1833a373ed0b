"""Many chains with the same edges at a time, in plain doubles: one chain a draw from a posterior or a bootstrap."""
