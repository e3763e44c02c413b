"""What happened: read from the bus, matched with webhooks, made into bodies."""
