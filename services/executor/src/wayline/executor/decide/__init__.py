"""What a job needs next, decided from its state alone: no clock, no I/O."""
