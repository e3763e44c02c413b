"""What each provider refuses of a request, in its words where they are known."""
