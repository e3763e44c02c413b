"""Fetch pages as their hosts permit, and read what they hold."""
