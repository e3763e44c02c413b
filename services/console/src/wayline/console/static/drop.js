// Files that are dropped anywhere on the page go into its field, beside those that it has: a browser would open them.
"use strict";
(() => {
  const field = document.querySelector("[data-files] [type=file]");
  if (!field) return;
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    if (field.disabled) return;
    const all = new DataTransfer();
    for (const file of [...field.files, ...event.dataTransfer.files]) all.items.add(file);
    field.files = all.files;
  });
})();
