"""Sets of vectors: built beside the live one, compared with it, and put in its place."""
