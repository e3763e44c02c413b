"""Named places where a test may kill the process: the one registry that the fault tests are generated from.

Off unless `WAYLINE_FAILPOINT` names one (`name` or `name:nth`): then the process kills itself with SIGKILL the nth time
it gets there. A failpoint that no test hits fails the fault suite.
"""

from __future__ import annotations

import os
import signal
from enum import StrEnum


class Failpoint(StrEnum):
    """`<service>.<what>.<before|after>`."""

    GATEWAY_SUBMIT_BEFORE = "gateway.submit.before"
    GATEWAY_SUBMIT_AFTER = "gateway.submit.after"
    GATEWAY_REDRIVE_BEFORE = "gateway.redrive.before"
    GATEWAY_REDRIVE_AFTER = "gateway.redrive.after"
    GATEWAY_REDRIVEN_BEFORE = "gateway.redriven.before"
    GATEWAY_REDRIVEN_AFTER = "gateway.redriven.after"
    GATEWAY_ACTION_BEFORE = "gateway.action.before"
    GATEWAY_HOLD_AFTER = "gateway.hold.after"
    GATEWAY_COUNT_BEFORE = "gateway.count.before"
    GATEWAY_COUNT_AFTER = "gateway.count.after"

    ROUTER_RESERVE_BEFORE = "router.reserve.before"
    ROUTER_RESERVE_AFTER = "router.reserve.after"
    ROUTER_RECORD_BEFORE = "router.record.before"
    ROUTER_RECORD_AFTER = "router.record.after"
    ROUTER_TICKET_AFTER = "router.ticket.after"
    ROUTER_ACK_AFTER = "router.ack.after"
    ROUTER_WAKE_BEFORE = "router.wake.before"
    ROUTER_WAKE_AFTER = "router.wake.after"
    ROUTER_EXPIRE_BEFORE = "router.expire.before"
    ROUTER_EXPIRE_AFTER = "router.expire.after"
    ROUTER_PLACE_BEFORE = "router.place.before"
    ROUTER_PLACE_AFTER = "router.place.after"
    ROUTER_FEED_BEFORE = "router.feed.before"
    ROUTER_FEED_AFTER = "router.feed.after"
    ROUTER_RESUME_BEFORE = "router.resume.before"
    ROUTER_RESUME_AFTER = "router.resume.after"
    ROUTER_TURN_BEFORE = "router.turn.before"
    ROUTER_TURN_AFTER = "router.turn.after"
    ROUTER_FIRING_BEFORE = "router.firing.before"
    ROUTER_FIRING_AFTER = "router.firing.after"
    ROUTER_FIRED_AFTER = "router.fired.after"
    ROUTER_EXTRACTION_BEFORE = "router.extraction.before"
    ROUTER_EXTRACTION_AFTER = "router.extraction.after"
    ROUTER_EXTRACTED_AFTER = "router.extracted.after"
    ROUTER_STEER_BEFORE = "router.steer.before"
    ROUTER_STEER_AFTER = "router.steer.after"
    ROUTER_CHILD_BEFORE = "router.child.before"
    ROUTER_CHILD_AFTER = "router.child.after"
    ROUTER_PARENT_BEFORE = "router.parent.before"
    ROUTER_PARENT_AFTER = "router.parent.after"
    ROUTER_FORGET_BATCH_BEFORE = "router.forget_batch.before"
    ROUTER_FORGET_BATCH_AFTER = "router.forget_batch.after"
    ROUTER_FORGET_COUNT_BEFORE = "router.forget_count.before"
    ROUTER_FORGET_COUNT_AFTER = "router.forget_count.after"
    ROUTER_FORGET_ERASE_AFTER = "router.forget_erase.after"
    ROUTER_FORGET_END_BEFORE = "router.forget_end.before"
    ROUTER_FORGET_END_AFTER = "router.forget_end.after"

    EXECUTOR_CLAIM_BEFORE = "executor.claim.before"
    EXECUTOR_CLAIM_AFTER = "executor.claim.after"
    EXECUTOR_INTENT_BEFORE = "executor.intent.before"
    EXECUTOR_INTENT_AFTER = "executor.intent.after"
    EXECUTOR_STEER_BEFORE = "executor.steer.before"
    EXECUTOR_STEER_AFTER = "executor.steer.after"
    EXECUTOR_MODEL_AFTER = "executor.model.after"
    EXECUTOR_AUX_AFTER = "executor.aux.after"
    EXECUTOR_MEMORY_AFTER = "executor.memory.after"
    EXECUTOR_TOOL_BEFORE = "executor.tool.before"
    EXECUTOR_TOOL_AFTER = "executor.tool.after"
    EXECUTOR_RESULT_BEFORE = "executor.result.before"
    EXECUTOR_RESULT_AFTER = "executor.result.after"
    EXECUTOR_CODE_INTENT_BEFORE = "executor.code_intent.before"
    EXECUTOR_CODE_INTENT_AFTER = "executor.code_intent.after"
    EXECUTOR_CODE_RESULT_BEFORE = "executor.code_result.before"
    EXECUTOR_CODE_RESULT_AFTER = "executor.code_result.after"
    EXECUTOR_SNAPSHOT_BEFORE = "executor.snapshot.before"
    EXECUTOR_SNAPSHOT_AFTER = "executor.snapshot.after"
    EXECUTOR_HAND_BACK_BEFORE = "executor.hand_back.before"
    EXECUTOR_HAND_BACK_AFTER = "executor.hand_back.after"
    EXECUTOR_SCHEDULE_AFTER = "executor.schedule.after"
    EXECUTOR_PARK_BEFORE = "executor.park.before"
    EXECUTOR_PARK_AFTER = "executor.park.after"
    EXECUTOR_APPROVAL_BEFORE = "executor.approval.before"
    EXECUTOR_APPROVAL_AFTER = "executor.approval.after"
    EXECUTOR_CHILD_BEFORE = "executor.child.before"
    EXECUTOR_CHILD_AFTER = "executor.child.after"
    EXECUTOR_STOP_CHILD_AFTER = "executor.stop_child.after"
    EXECUTOR_RESOLVE_BEFORE = "executor.resolve.before"
    EXECUTOR_RESOLVE_AFTER = "executor.resolve.after"
    EXECUTOR_END_BEFORE = "executor.end.before"
    EXECUTOR_END_AFTER = "executor.end.after"
    EXECUTOR_REPLY_AFTER = "executor.reply.after"
    EXECUTOR_SETTLE_AFTER = "executor.settle.after"
    EXECUTOR_ACK_AFTER = "executor.ack.after"

    REGISTRY_LEDGER_BEFORE = "tool_registry.ledger.before"
    REGISTRY_LEDGER_AFTER = "tool_registry.ledger.after"
    REGISTRY_EFFECT_AFTER = "tool_registry.effect.after"
    REGISTRY_FINISH_AFTER = "tool_registry.finish.after"

    RETRIEVAL_KEEP_BEFORE = "retrieval.keep.before"
    RETRIEVAL_KEEP_AFTER = "retrieval.keep.after"
    RETRIEVAL_VECTORS_BEFORE = "retrieval.vectors.before"
    RETRIEVAL_VECTORS_AFTER = "retrieval.vectors.after"
    RETRIEVAL_SWITCH_BEFORE = "retrieval.switch.before"
    RETRIEVAL_SWITCH_AFTER = "retrieval.switch.after"
    RETRIEVAL_STORE_BEFORE = "retrieval.store.before"
    RETRIEVAL_STORE_AFTER = "retrieval.store.after"
    RETRIEVAL_FACTS_BEFORE = "retrieval.facts.before"
    RETRIEVAL_FACTS_AFTER = "retrieval.facts.after"
    RETRIEVAL_FACTS_SAVED = "retrieval.facts.saved"
    RETRIEVAL_CONSOLIDATE_STEP = "retrieval.consolidate.step"
    RETRIEVAL_CONSOLIDATE_AFTER = "retrieval.consolidate.after"
    RETRIEVAL_UNDO_BEFORE = "retrieval.undo.before"
    RETRIEVAL_UNDO_AFTER = "retrieval.undo.after"
    RETRIEVAL_ACK_AFTER = "retrieval.ack.after"

    TRACING_STORE_BEFORE = "tracing.store.before"
    TRACING_STORE_AFTER = "tracing.store.after"
    TRACING_ACK_AFTER = "tracing.ack.after"

    NOTIFIER_STORE_BEFORE = "notifier.store.before"
    NOTIFIER_STORE_AFTER = "notifier.store.after"
    NOTIFIER_ACK_AFTER = "notifier.ack.after"
    NOTIFIER_CLAIM_AFTER = "notifier.claim.after"
    NOTIFIER_SEND_AFTER = "notifier.send.after"
    NOTIFIER_END_AFTER = "notifier.end.after"


_armed, _left = "", 1


def reach(point: Failpoint) -> None:
    """Kill the process here when this point is armed; otherwise cost one comparison."""
    global _left  # noqa: PLW0603 - one process, one armed point, counted down where it is reached
    if point != _armed:
        return
    _left -= 1
    if _left == 0:
        os.kill(os.getpid(), signal.SIGKILL)


def arm(setting: str) -> None:
    """Arm the point that a setting names, for instance `executor.intent.after:2`, the second time; empty: none."""
    global _armed, _left  # noqa: PLW0603 - as above
    _armed, _, nth = setting.partition(":")
    _left = int(nth or 1)


arm(os.environ.get("WAYLINE_FAILPOINT", ""))
