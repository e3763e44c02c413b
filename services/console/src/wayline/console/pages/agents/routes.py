"""The pages about agents, put together."""

from __future__ import annotations

from fastapi import APIRouter

from wayline.console.pages.agents import agent_list, agent_page, agent_trial, agent_uses, agent_versions

router = APIRouter()
for pages in (agent_list, agent_page, agent_trial, agent_uses, agent_versions):
    router.include_router(pages.router)
