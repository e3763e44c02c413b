"""What a model is sent, and what it is shown of a tool's result: pure."""
