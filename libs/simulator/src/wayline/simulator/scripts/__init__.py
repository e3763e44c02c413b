"""What is answered: scripts, rules and faults."""
