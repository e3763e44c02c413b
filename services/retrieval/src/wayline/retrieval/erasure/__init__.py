"""Erases what retrieval keeps of users, subjects and jobs."""
