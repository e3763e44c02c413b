"""Search the web, and fetch its pages as text."""
