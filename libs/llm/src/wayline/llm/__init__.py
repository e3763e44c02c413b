"""One Model protocol, and the offline model behind it."""
