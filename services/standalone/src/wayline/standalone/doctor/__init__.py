"""What `wayline doctor` examines, one file for each subject."""
