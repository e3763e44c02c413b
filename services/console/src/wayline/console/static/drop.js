// Files that are dropped anywhere on the page go into its field, beside those that it has: a browser would open them.
"use strict";
(() => {
  const field = document.querySelector("[data-files] [type=file]");
  if (!field) return;
  // A text that is dragged into a field is the browser's.
  const hasFiles = (event) => event.dataTransfer.types.includes("Files");
  document.addEventListener("dragover", (event) => hasFiles(event) && event.preventDefault());
  document.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    if (field.disabled) return;
    const all = new DataTransfer();
    for (const file of [...field.files, ...event.dataTransfer.files]) all.items.add(file);
    field.files = all.files;
  });
})();
