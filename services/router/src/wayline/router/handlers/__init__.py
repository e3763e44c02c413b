"""What the router does with each message it hears."""
