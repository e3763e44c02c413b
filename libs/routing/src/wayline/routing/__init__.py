"""Which model takes a job, who takes its place, and why in one sentence."""

from wayline.routing.backtest import DecidedAgain, backtest_summary, decide_again
from wayline.routing.choose import STAYS, TENANTS_DEFAULT, choose_again, choose_limits, choose_route
from wayline.routing.context_budget import BUDGETS, ContextBudget
from wayline.routing.decision import Decision
from wayline.routing.escalation import Cause, next_route
from wayline.routing.policy import Policy, current_policy, named_policy, policy_with
from wayline.routing.routing_input import RoutingInput
from wayline.routing.styles import STYLES, confidence_needed, style_text, system_prompt

__all__ = [
    "BUDGETS",
    "STAYS",
    "STYLES",
    "TENANTS_DEFAULT",
    "Cause",
    "ContextBudget",
    "DecidedAgain",
    "Decision",
    "Policy",
    "RoutingInput",
    "backtest_summary",
    "choose_again",
    "choose_limits",
    "choose_route",
    "confidence_needed",
    "current_policy",
    "decide_again",
    "named_policy",
    "next_route",
    "policy_with",
    "style_text",
    "system_prompt",
]
