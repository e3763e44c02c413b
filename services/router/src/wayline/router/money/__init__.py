"""Money: budgets, what is held of them, charges that no job settles, jobs that wait for money."""
