"""Adapters of money: budgets, the charges that no job settles, the jobs that wait for money."""
