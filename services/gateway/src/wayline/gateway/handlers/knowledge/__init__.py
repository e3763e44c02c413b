"""Handlers of documents, searches and the files of a job."""
