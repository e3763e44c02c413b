// Keys: `/` searches, `g` and a letter goes, `j` and `k` move between rows, `a` and `d` decide, `?` lists them.
"use strict";
(() => {
  const GO_WITHIN_MS = 1200;
  let going = 0;
  const rows = () => [...document.querySelectorAll("[data-row] a")];

  const move = (by) => {
    const all = rows();
    if (!all.length) return;
    const at = all.indexOf(document.activeElement);
    all[Math.min(Math.max(at + by, 0), all.length - 1)].focus();
  };

  // Only the focus moves: Enter decides, about what one sees.
  const decide = (value) => {
    const all = document.querySelectorAll(".approval");
    const one = document.activeElement.closest(".approval") ?? (all.length === 1 ? all[0] : null);
    one?.querySelector(`button[value="${value}"]`)?.focus();
  };

  // What is wider than its place is scrolled by keys as well.
  document.querySelectorAll(".wide, .tabs").forEach((one) => {
    if (one.scrollWidth > one.clientWidth) one.tabIndex = 0;
  });

  // A slider's number follows it.
  document.addEventListener("input", ({ target }) => {
    const shown = target.type === "range" && target.parentElement.querySelector("output");
    if (shown) shown.value = target.value;
  });

  // An id or a block of code; without a clipboard it is selected.
  document.documentElement.classList.add("scripted");
  document.addEventListener("click", async ({ target }) => {
    if (!target.matches("[data-copy]")) return;
    const copied = target.closest(".code-card, h1").querySelector("pre, span");
    try {
      await navigator.clipboard.writeText(copied.textContent);
      target.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(copied);
    }
  });

  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, textarea, select, dialog");
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (going && event.timeStamp - going < GO_WITHIN_MS) {
      going = 0;
      const link = document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
      if (link) link.click();
      return;
    }
    const act = {
      "/": () => (document.querySelector("[data-search]") ?? document.querySelector("[data-go='j']"))?.focus(),
      "?": () => document.getElementById("keys")?.showModal(),
      g: () => (going = event.timeStamp),
      j: () => move(1),
      k: () => move(-1),
      a: () => decide("approve"),
      d: () => decide("deny"),
    }[event.key];
    if (act) {
      event.preventDefault();
      act();
    }
  });
})();
