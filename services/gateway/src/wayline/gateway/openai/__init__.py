"""The OpenAI API as the gateway speaks it: requests become jobs, jobs become answers and streams. Pure."""
