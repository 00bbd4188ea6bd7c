"""Limits on what is asked of judges: rates, calls at once, budgets."""
