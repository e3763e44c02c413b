"""Whether a job begins: what is read of its submission, the statement that admits it, its first events."""
