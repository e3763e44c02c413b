// Keeps what changes on a page as a fresh load would show it: a job while it runs, and rows of the list of jobs.
"use strict";
(() => {
  const holder = document.querySelector("[data-live]");
  if (!holder) return;
  const LEAST_MS = 250;
  const GONE = [401, 403, 404];
  const AGAIN_MS = 2000;
  const LATER_MS = 1000; // What ended and is not stored whole yet.
  const READ_WITHIN_MS = 30000;
  const TIMES_LONGER = 3; // A page that takes long to read is read less often.
  let source = null;
  let waiting = null;
  let changed = false;
  let pause = LEAST_MS;
  let text = "";
  let of = "";
  let heard = 0; // Characters of the model's text, with those that were missed.
  let told = {};

  const show = () => {
    const stream = holder.querySelector("[data-stream]");
    if (stream) stream.textContent = text;
    const state = holder.querySelector("[data-progress]");
    // Of the same state what was told says more than the log.
    if (state && state.dataset.progress === told.of) state.textContent = told.message;
  };

  // One at a time: an older answer must not take the place of a newer one.
  const refresh = async () => {
    const began = performance.now();
    changed = false;
    try {
      const answer = await fetch(holder.dataset.region, { signal: AbortSignal.timeout(READ_WITHIN_MS) });
      // Without a right to it, or without the job, it is not asked for again.
      if (GONE.includes(answer.status)) return close();
      if (!answer.ok) throw new Error(String(answer.status));
      await htmx.swap({ text: await answer.text(), target: holder, sourceElement: holder, swap: "innerMorph" });
      pause = Math.max(LEAST_MS, TIMES_LONGER * (performance.now() - began));
    } catch {
      // Read again soon: nothing may come that would ask for it.
      changed = true;
      pause = AGAIN_MS;
    }
    waiting = null;
    show();
    if (changed) document.hidden || soon();
    else open();
  };

  const soon = () => {
    changed = true;
    waiting ??= setTimeout(refresh, pause);
  };

  const begin = (attempt) => {
    of = attempt;
    text = "";
    heard = 0;
  };

  const close = () => {
    source?.close();
    source = null;
  };

  const open = () => {
    const ended = holder.querySelector("[data-ended]")?.dataset.ended;
    if (ended) close();
    if (source || document.hidden) return;
    if (ended === "soon") pause = LATER_MS;
    if (ended) return changed || ended === "soon" ? soon() : undefined;
    const head = holder.querySelector("[data-seq]");
    const address = new URL(holder.dataset.live, location.href);
    address.searchParams.set("after", head?.dataset.seq ?? "0");
    source = new EventSource(address);
    // What happened while nobody listened is in the page that is read now.
    source.addEventListener("open", soon);
    source.addEventListener("changed", (event) => {
      const told = JSON.parse(event.data);
      if (told.type === "model.requested" && told.of !== of) begin(told.of);
      soon();
    });
    source.addEventListener("delta", (event) => {
      const piece = JSON.parse(event.data);
      if (piece.of !== of) begin(piece.of);
      if (piece.offset !== null && piece.offset > heard) text += "… ";
      heard = (piece.offset ?? heard) + [...piece.text].length;
      text += piece.text;
      show();
    });
    source.addEventListener("progress", (event) => {
      told = JSON.parse(event.data);
      const state = holder.querySelector("[data-progress]");
      if (state) state.dataset.progress = told.of;
      show();
    });
    source.addEventListener("error", () => {
      // After 204 a browser asks no more: what ended is read once.
      if (source?.readyState === EventSource.CLOSED) {
        close();
        soon();
      }
    });
  };

  // A hidden tab gives its connection back: a browser has six for a host.
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  holder.addEventListener("later", soon);
  open();
})();

// Rows change where they stand, and none comes or goes under the pointer: of new jobs only the number is said.
(() => {
  const holder = document.querySelector("[data-news]");
  if (!holder) return;
  const LEAST_MS = 1000;
  const link = holder.querySelector("[data-new]");
  const fresh = new Set();
  const changed = new Set();
  let source = null;
  let waiting = null;
  const rowOf = (id) => document.querySelector(`[data-job="${CSS.escape(id)}"]`);

  const refresh = async () => {
    const address = new URL(holder.dataset.rows, location.href);
    changed.forEach((id) => address.searchParams.append("id", id));
    changed.clear();
    try {
      const answer = await fetch(address);
      const page = new DOMParser().parseFromString(answer.ok ? await answer.text() : "", "text/html");
      page.querySelectorAll("[data-job]").forEach((row) => {
        const old = rowOf(row.dataset.job);
        const kept = old.querySelector("input");
        if (kept) row.querySelector("input").replaceWith(kept);
        const focused = old.contains(document.activeElement) && document.activeElement.matches("a");
        old.replaceChildren(...row.childNodes);
        if (focused) old.querySelector("a").focus();
      });
    } catch {
      // What was cut off is asked for again with the next event.
    } finally {
      waiting = null;
      if (changed.size) soon();
    }
  };

  const soon = () => (waiting ??= setTimeout(refresh, LEAST_MS));

  const all = () => {
    document.querySelectorAll("[data-job]").forEach((row) => changed.add(row.dataset.job));
    if (changed.size) soon();
  };

  const close = () => {
    source?.close();
    source = null;
  };

  const open = (again) => {
    source = new EventSource(holder.dataset.news);
    let opened = again;
    source.addEventListener("open", () => {
      if (opened) all();
      opened = true;
    });
    source.addEventListener("gap", all);
    source.addEventListener("changed", (event) => {
      const id = JSON.parse(event.data).job_id;
      if (rowOf(id)) changed.add(id), soon();
    });
    source.addEventListener("new", (event) => {
      const id = JSON.parse(event.data).job_id;
      if (rowOf(id)) return;
      fresh.add(id);
      // A moment later the list has it as well.
      setTimeout(() => {
        link.textContent = `${fresh.size} new`;
        link.hidden = false;
      }, LEAST_MS);
    });
  };

  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open(true)));
  if (!document.hidden) open(false);
})();
