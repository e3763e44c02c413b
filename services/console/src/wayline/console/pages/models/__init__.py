"""The pages about models."""
