"""Programs that this service starts as processes of their own."""
