// Keeps the part of a page that changes as a fresh load would show it, for as long as the job runs.
"use strict";
(() => {
  const holder = document.querySelector("[data-live]");
  if (!holder) return;
  const LEAST_MS = 250;
  let source = null;
  let waiting = null;
  let text = "";
  let joinedLate = true;

  const show = () => {
    const stream = holder.querySelector("[data-stream]");
    if (stream) stream.textContent = (joinedLate && text ? "… " : "") + text;
  };

  const refresh = async () => {
    waiting = null;
    await htmx.ajax("GET", holder.dataset.region, { target: holder, swap: "innerMorph" });
    show();
    if (holder.querySelector("[data-ended='1']")) close();
  };

  const soon = () => {
    waiting ??= setTimeout(refresh, LEAST_MS);
  };

  const close = () => {
    source?.close();
    source = null;
  };

  const open = () => {
    if (source || holder.querySelector("[data-ended='1']")) return;
    const head = holder.querySelector("[data-seq]");
    const address = new URL(holder.dataset.live, location.href);
    address.searchParams.set("after", head?.dataset.seq ?? "0");
    source = new EventSource(address);
    // What happened while nobody listened is in the page that is read now.
    source.addEventListener("open", soon);
    source.addEventListener("changed", (event) => {
      const kind = JSON.parse(event.data).type;
      if (kind === "model.requested") {
        text = "";
        joinedLate = false;
      }
      soon();
    });
    source.addEventListener("delta", (event) => {
      text += JSON.parse(event.data).text;
      show();
    });
    source.addEventListener("progress", (event) => {
      const place = holder.querySelector("[data-progress]");
      if (place) place.textContent = JSON.parse(event.data).message;
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
  if (!document.hidden) open();
})();
