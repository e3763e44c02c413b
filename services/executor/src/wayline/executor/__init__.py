"""Claims run tickets and takes each job to its end, step by step."""
