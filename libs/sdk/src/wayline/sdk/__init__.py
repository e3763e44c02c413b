"""For your own services on Wayline's bus: offer functions as tools, submit jobs, react to finished ones."""

from wayline.contracts.bus_tools import InvokeResult as Result
from wayline.contracts.errors import Conflict, InvalidMessage, Refused, Reject, Retry, Unavailable, WaylineError
from wayline.contracts.finished_jobs import FinishedJob
from wayline.contracts.jobs import JobView
from wayline.sdk.call import Call
from wayline.sdk.connection import bus_broker
from wayline.sdk.errors import JobTimeout, JobWaits, ToolFailed, ToolsRefused, TryLater
from wayline.sdk.finished import FinishedJobs
from wayline.sdk.jobs import Jobs
from wayline.sdk.passage_ranking import Reranked, Scored, keyword_search, reciprocal_rank_fusion, rerank
from wayline.sdk.tools import Tools

__all__ = [
    "Call",
    "Conflict",
    "FinishedJob",
    "FinishedJobs",
    "InvalidMessage",
    "JobTimeout",
    "JobView",
    "JobWaits",
    "Jobs",
    "Refused",
    "Reject",
    "Reranked",
    "Result",
    "Retry",
    "Scored",
    "ToolFailed",
    "Tools",
    "ToolsRefused",
    "TryLater",
    "Unavailable",
    "WaylineError",
    "bus_broker",
    "keyword_search",
    "reciprocal_rank_fusion",
    "rerank",
]
