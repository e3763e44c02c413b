"""What the doctor looks at, one file a place."""
