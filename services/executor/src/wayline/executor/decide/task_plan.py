"""The assembler `task_plan`: a plan made of what tools recorded and of the order that a model gave. Pure.

Dependencies and clusters come from the log alone, never from prose; waves are computed from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from wayline.contracts.plan_input import PlanInput, read_plan_input
from wayline.journal import Job
from wayline.llm.broken_json import repair
from wayline.planning import QUOTE_MAX_CHARS, TASKS_MAX, Dependency, Task, Waves, prioritized, waves, words

NAME_MAX_CHARS = 300
REASON_MAX_CHARS = 1_000
REASONING_MAX_CHARS = 20_000
LABEL_MAX_CHARS = 200
CLUSTERS_MAX = TASKS_MAX
FAILURES_MAX = 5
FAILURE_MAX_CHARS = 200
EVIDENCE_MAX = 10_000
"""Dependencies that are looked at; of these the plan has the surest."""
KNOWN_SHARE = 0.9
"""What is left of a weight that an earlier plan found."""
NO_TASKS = "no tasks were given, and none were found in the documents"


class Evidence(NamedTuple):
    """A dependency, and where it is from."""

    dependency: Dependency
    document_id: str = ""
    source_job: str = ""


class Known(NamedTuple):
    """The tasks of a plan, and by which names they are known."""

    tasks: dict[str, Task]
    by_name: dict[str, str]

    def add(self, task: Task) -> None:
        """Add a task, unless there are too many, or one of its id."""
        if len(self.tasks) < TASKS_MAX:
            self.tasks.setdefault(task.id, task)
            self.by_name.setdefault(name_key(task.name), task.id)

    def id_of(self, given: str, name: str) -> str | None:
        """Return the task that a tool or a model means: of this id and name, else of this name, else of this id."""
        if not given:
            return None
        same = given in self.tasks and name_key(self.tasks[given].name) == name_key(name)
        found = self.by_name.get(name_key(name)) if name and not same else None
        return found or (given if given in self.tasks else self.by_name.get(name_key(given)))


def task_plan(job: Job, draft: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plan of a job whose model's answer fits the draft's schema."""
    given, results = plan_input(job), [*_results(job)]
    known = _known(given, results)
    if not known.tasks:
        return empty_task_plan(job, "; ".join((NO_TASKS, *_failures(job))))
    evidence = _evidence(known, given, results)
    tasks = [*known.tasks.values()]
    found = waves(tasks, [one.dependency for one in evidence.values()])
    reasons = dict(_reasons(draft, known))
    wave_of = {one: number for number, wave in enumerate(found.waves, start=1) for one in wave}
    return {
        "prioritized_tasks": [
            {"id": one, "name": known.tasks[one].name, "wave": wave_of[one]}
            | ({"reason": reasons[one]} if reasons.get(one) else {})
            for one in prioritized(tasks, found, order=[*reasons])
        ],
        "execution_waves": [{"wave": n, "tasks": [*wave]} for n, wave in enumerate(found.waves, start=1)],
        "dependencies": [*_shown(found, evidence)],
        "clusters": _clusters(known, results),
        "reasoning": _text(draft.get("reasoning"), REASONING_MAX_CHARS),
        "execution_metadata": _metadata(job),
    }


def empty_task_plan(job: Job, why: str) -> dict[str, Any]:
    """Return a plan of nothing that says why."""
    return {
        "prioritized_tasks": [],
        "execution_waves": [],
        "dependencies": [],
        "clusters": [],
        "reasoning": "",
        "execution_metadata": _metadata(job) | {"empty_because": why},
    }


def plan_input(job: Job) -> PlanInput:
    """Return what a job was asked to plan; files beside the text are documents to read."""
    submitted = job.life.submitted
    parts = submitted.parts() if submitted is not None else ()
    read = read_plan_input("\n".join(part.text for part in parts if part.type == "text"))
    files = tuple(part.document_id for part in parts if part.type == "file")
    return read.model_copy(update={"document_ids": tuple(dict.fromkeys((*read.document_ids, *files)))})


def name_key(name: str) -> str:
    """Return what two spellings of one name have in common."""
    return " ".join(word.text for word in words(name[:NAME_MAX_CHARS]))


def _results(job: Job) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what tools recorded as JSON, oldest first."""
    for one in job.tools.recorded:
        if one.failed:
            continue
        try:
            value = repair.strict(one.content)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield one.tool, value


def _failures(job: Job) -> list[str]:
    """Return why tools failed, each reason once."""
    failed = (f"{one.tool} failed: {one.content[:FAILURE_MAX_CHARS]}" for one in job.tools.recorded if one.failed)
    return list(dict.fromkeys(failed))[:FAILURES_MAX]


def _known(given: PlanInput, results: list[tuple[str, dict[str, Any]]]) -> Known:
    """Return the tasks that were given, else those that a tool read, with what a model added."""
    known = Known({}, {})
    for one in given.numbered:
        known.add(Task(one.id.strip(), one.name[:NAME_MAX_CHARS], one.text, tuple(one.depends_on), one.priority))
    for tool, value in results:
        for task, name in _listed(value) if tool == "detect_dependencies" else ():
            if known.id_of(task, name) is None:
                known.add(Task(task, name))
    return known


def _listed(value: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the ids and names of the tasks that a result is about."""
    for one in _objects(value.get("tasks")):
        task, name = _text(one.get("id"), 64), _text(one.get("name"), NAME_MAX_CHARS)
        if task and name:
            yield task, name


def _evidence(
    known: Known, given: PlanInput, results: list[tuple[str, dict[str, Any]]]
) -> dict[tuple[str, str], Evidence]:
    """Return the surest evidence of each dependency: stated in the input, found by a tool, known from earlier plans."""
    best: dict[tuple[str, str], Evidence] = {}

    def note(one: Evidence) -> None:
        key = (one.dependency.task, one.dependency.needs)
        if key not in best and len(best) >= EVIDENCE_MAX:
            return
        if key not in best or best[key].dependency.weight < one.dependency.weight:
            best[key] = one

    for task in known.tasks.values():
        for needs in task.depends_on:
            other = known.id_of(needs, "")
            if other is not None and other != task.id:
                note(Evidence(Dependency(task.id, other, 1.0, "stated", f"depends_on: {needs}"[:QUOTE_MAX_CHARS])))
    for tool, value in results:
        if tool == "detect_dependencies":
            names = dict(_listed(value))
            for one in _objects(value.get("dependencies")):
                _note_edge(known, one, names, note)
        elif tool == "query_task_graph":
            for one in _objects(value.get("dependencies")):
                _note_edge(known, one, None, note)
    return best


def _note_edge(known: Known, one: Mapping[str, Any], names: Mapping[str, str] | None, note: Any) -> None:
    """Note a dependency of a result; `names`: of its ids. None: it names tasks, as the graph of earlier plans does."""
    ends = [_text(one.get(end), NAME_MAX_CHARS) for end in ("task", "needs")]
    task, needs = (known.id_of(end, names.get(end, "") if names is not None else end) for end in ends)
    weight = one.get("weight")
    if task is None or needs is None or task == needs or not isinstance(weight, int | float) or not 0 <= weight <= 1:
        return
    share = 1.0 if names is not None else KNOWN_SHARE
    kind: Any = _text(one.get("kind"), 32) or "stated"
    quote = _text(one.get("quote"), QUOTE_MAX_CHARS)
    found = Dependency(task, needs, round(weight * share, 3), kind, quote)
    note(Evidence(found, _text(one.get("document_id"), 200), _text(one.get("source_job"), 64)))


def _shown(found: Waves, evidence: Mapping[tuple[str, str], Evidence]) -> Iterator[dict[str, Any]]:
    """Yield the dependencies that the waves keep to, then those that were cut with their cycles."""
    cuts = [(cycle.cut, {"cut": True, "cycle": [*cycle.tasks]}) for cycle in found.cycles]
    for one, more in [*((one, {}) for one in found.dependencies), *cuts]:
        origin = evidence[one.task, one.needs]
        value: dict[str, Any] = {
            "task": one.task,
            "needs": one.needs,
            "weight": one.weight,
            "kind": one.kind,
            "quote": one.quote,
        }
        value |= {"document_id": origin.document_id} if origin.document_id else {}
        value |= {"source_job": origin.source_job} if origin.source_job else {}
        yield value | more


def _clusters(known: Known, results: list[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the groups of the newest result that has any; what it groups beside the plan's tasks is left out."""
    for tool, value in reversed(results):
        if tool != "cluster_by_similarity":
            continue
        names = dict(_listed(value))
        found: list[dict[str, Any]] = []
        for one in _objects(value.get("clusters"))[:CLUSTERS_MAX]:
            given = one.get("tasks")
            ids = (
                [known.id_of(str(task), names.get(str(task), "")) for task in given] if isinstance(given, list) else []
            )
            if members := [task for task in dict.fromkeys(ids) if task is not None]:
                found.append({"label": _text(one.get("label"), LABEL_MAX_CHARS), "tasks": members})
        if found:
            return found
    return []


def _reasons(draft: Mapping[str, Any], known: Known) -> Iterator[tuple[str, str]]:
    """Yield the tasks in the order that a model gave them, each with its reason."""
    for one in _objects(draft.get("prioritized_tasks")):
        task = known.id_of(_text(one.get("id"), NAME_MAX_CHARS), "")
        if task is not None:
            yield task, _text(one.get("reason"), REASON_MAX_CHARS)


def _metadata(job: Job) -> dict[str, Any]:
    began, now = job.life.created_at, job.at
    lasted = (now - began).total_seconds() * 1_000 if began is not None and now is not None else 0
    return {"steps": job.model.step, "calls": len(job.tools.recorded), "duration_ms": max(0, round(lasted))}


def _objects(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _text(value: Any, most: int) -> str:
    return value[:most] if isinstance(value, str) else ""
