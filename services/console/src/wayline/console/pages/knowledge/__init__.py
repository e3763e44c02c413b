"""Knowledge: documents, searches, and what is remembered."""
