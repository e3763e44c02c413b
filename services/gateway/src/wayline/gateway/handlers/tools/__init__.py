"""Handlers of agents, tools, MCP servers, their logins and prompt templates."""
