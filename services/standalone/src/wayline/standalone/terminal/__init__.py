"""What the gateway answers, drawn for a terminal."""
