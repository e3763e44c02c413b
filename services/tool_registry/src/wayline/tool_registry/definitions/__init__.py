"""What a tool is: its definition as its server offers it, as it was approved, and as a model reads it."""
