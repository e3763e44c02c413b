// Sends files one by one, dropped ones and whole folders too, so that each has its own end. The address names what was
// sent, and the session's storage what was refused or not sent yet: both outlast a reload.
"use strict";
(() => {
  const form = document.querySelector("[data-upload]");
  if (!form) return;
  const AT_ONCE = 3;
  const FOLLOWED_MAX = 40;
  const KEPT = "wayline-refused";
  const most = Number(form.dataset.upload);
  const drop = form.querySelector("[data-drop]");
  const status = document.querySelector("[data-sending]");
  const list = document.querySelector("[data-refused]");
  const waiting = [];
  let sent = 0;
  let running = 0;
  let reading = false;
  let stale = false;

  const kept = () => JSON.parse(sessionStorage.getItem(KEPT) ?? "[]");
  const show = () => {
    list.replaceChildren(...kept().map((line) => Object.assign(document.createElement("li"), { textContent: line })));
    status.textContent = running || waiting.length ? `${sent} sent, ${running + waiting.length} to go` : sent ? `${sent} sent` : "";
  };
  const refuse = (...lines) => sessionStorage.setItem(KEPT, JSON.stringify([...kept(), ...lines].slice(-100)));

  // One at a time: an older answer must not take the place of a newer one.
  const refresh = async () => {
    stale = true;
    if (reading) return;
    reading = true;
    while (stale) {
      stale = false;
      const region = `${location.pathname}/region${location.search}`;
      await htmx.ajax("GET", region, { target: "#uploads", swap: "outerHTML" }).catch(() => {});
    }
    reading = false;
  };
  const follow = (ids) => {
    const all = [...new Set([...new URLSearchParams(location.search).getAll("id"), ...ids])].slice(-FOLLOWED_MAX);
    history.replaceState(null, "", `?${new URLSearchParams(all.map((id) => ["id", id]))}`);
    refresh();
  };

  const send = async ({ file, name }) => {
    if (file.size > most) return refuse(`${name}: it is larger than ${Math.round(most / 1e6)} MB`);
    const body = new FormData(form);
    for (const left of ["file", "urls", "text"]) body.delete(left);
    body.append("file", file, name);
    try {
      const answer = await fetch(form.action, { method: "POST", body, headers: { Accept: "application/json" } });
      if (!answer.headers.get("content-type")?.includes("json")) return refuse(`${name}: the console answered ${answer.status}`);
      const told = await answer.json();
      refuse(...told.refused);
      sent += told.ids.length;
      if (told.ids.length) follow(told.ids);
    } catch {
      refuse(`${name}: the console could not be reached, or the file could not be read`);
    }
  };

  const next = async () => {
    if (running >= AT_ONCE || !waiting.length) return;
    const taken = waiting.shift();
    running += 1;
    next();
    await send(taken);
    running -= 1;
    show();
    next();
  };
  const add = (files) => {
    waiting.push(...files);
    show();
    next();
  };
  const named = (files) =>
    [...files].map((file) => ({ file, name: file.webkitRelativePath || file.name })).filter(({ name }) => !/(^|\/)\./.test(name));

  // A folder is read a part at a time, until a part is empty.
  const inside = async (entry) => {
    if (entry.isFile) return [{ file: await new Promise((ok, no) => entry.file(ok, no)), name: entry.fullPath.slice(1) }];
    const reader = entry.createReader();
    const found = [];
    for (;;) {
      const part = await new Promise((ok, no) => reader.readEntries(ok, no));
      if (!part.length) return found;
      for (const one of part) if (!one.name.startsWith(".")) found.push(...(await inside(one)));
    }
  };

  const may = !form.querySelector("[type=file]").disabled;
  drop.hidden = !may;
  const hasFiles = (event) => event.dataTransfer.types.includes("Files");
  document.addEventListener("dragover", (event) => hasFiles(event) && event.preventDefault());
  document.addEventListener("drop", async (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    if (!may) return;
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry()).filter(Boolean);
    if (!entries.length) add(named(event.dataTransfer.files));
    for (const entry of entries) add(await inside(entry).catch(() => (refuse(`${entry.name}: it could not be read`), [])));
  });
  form.addEventListener("submit", (event) => {
    const chosen = [...form.querySelectorAll("[type=file]")].flatMap((input) => named(input.files));
    const rest = form.elements.urls.value.trim() || form.elements.text.value.trim();
    if (!chosen.length || rest) return;
    event.preventDefault();
    sessionStorage.removeItem(KEPT);
    add(chosen);
    for (const input of form.querySelectorAll("[type=file]")) input.value = "";
  });
  addEventListener("beforeunload", (event) => {
    if (running || waiting.length) event.preventDefault();
  });
  addEventListener("pagehide", () => refuse(...waiting.map(({ name }) => `${name}: it was not sent, as the page was left`)));
  show();
})();
