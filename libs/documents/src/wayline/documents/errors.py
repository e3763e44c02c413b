"""What can go wrong between a document and its text."""


class Unreadable(Exception):
    """A document cannot become text; the sentence says what to do and is shown to its sender."""
