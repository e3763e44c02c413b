"""The pages about schedules: when which job is submitted by itself, and what came of it."""
