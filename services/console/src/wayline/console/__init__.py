"""The web console of Wayline: pages that are made of what the HTTP API answers, and of nothing else."""
