"""What each identity may do on the bus, and the server's accounts made from it."""
