"""A job's event log on JetStream, and the state it folds to."""

from wayline.journal.calls import Approval, Call, Tools
from wayline.journal.client_results import ClientCalls, ResultConflict
from wayline.journal.costs import plus
from wayline.journal.exporting import NotAnExport, export_job, pinned_end, read_export, read_exported_history
from wayline.journal.failures import failure_fingerprint, fingerprint
from wayline.journal.folding import evolve, fold
from wayline.journal.folding.conversation import unbound
from wayline.journal.follow import News, Tell, follow
from wayline.journal.forked_calls import ForkRefused
from wayline.journal.forking import Branch, branch, prefix_hash
from wayline.journal.histories import (
    CHAIN_MAX,
    History,
    HistoryLost,
    as_sent,
    bounded,
    folded,
    handed_on,
    history_bytes,
    history_hash,
    is_refused,
    read_history,
    with_history,
)
from wayline.journal.log import (
    Fenced,
    JobLog,
    Stored,
    bulk_read,
    have_ended,
    last_record,
    leader_next,
    leader_read,
    note_foreign,
    record_read,
)
from wayline.journal.outcome import send_result
from wayline.journal.progress import ProgressNews, ProgressReader, progress_after, with_progress
from wayline.journal.record import Head, State, decode, encode, header_fields, is_record, read_record, unknown_types
from wayline.journal.repeats import Repeated
from wayline.journal.sharing import Shared
from wayline.journal.signal_counts import ALL_OF_TENANT, SIGNALS, signals_held
from wayline.journal.state import (
    Conversation,
    Job,
    Life,
    ModelCalls,
    ModelTotals,
    Money,
    Routing,
)
from wayline.journal.strangers import Words, stranger_of, words_of
from wayline.journal.tenant_log import RecordPage, TenantLog, TenantRecord
from wayline.journal.view import run_result, view

__all__ = [
    "ALL_OF_TENANT",
    "CHAIN_MAX",
    "SIGNALS",
    "Approval",
    "Branch",
    "Call",
    "ClientCalls",
    "Conversation",
    "Fenced",
    "ForkRefused",
    "Head",
    "History",
    "HistoryLost",
    "Job",
    "JobLog",
    "Life",
    "ModelCalls",
    "ModelTotals",
    "Money",
    "News",
    "NotAnExport",
    "ProgressNews",
    "ProgressReader",
    "RecordPage",
    "Repeated",
    "ResultConflict",
    "Routing",
    "Shared",
    "State",
    "Stored",
    "Tell",
    "TenantLog",
    "TenantRecord",
    "Tools",
    "Words",
    "as_sent",
    "bounded",
    "branch",
    "bulk_read",
    "decode",
    "encode",
    "evolve",
    "export_job",
    "failure_fingerprint",
    "fingerprint",
    "fold",
    "folded",
    "follow",
    "handed_on",
    "have_ended",
    "header_fields",
    "history_bytes",
    "history_hash",
    "is_record",
    "is_refused",
    "last_record",
    "leader_next",
    "leader_read",
    "note_foreign",
    "pinned_end",
    "plus",
    "prefix_hash",
    "progress_after",
    "read_export",
    "read_exported_history",
    "read_history",
    "read_record",
    "record_read",
    "run_result",
    "send_result",
    "signals_held",
    "stranger_of",
    "unbound",
    "unknown_types",
    "view",
    "with_history",
    "with_progress",
    "words_of",
]
