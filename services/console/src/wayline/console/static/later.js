// What is read where somebody comes near it; without scripts a link leads there.
"use strict";
(() => {
  const load = async (place) => {
    const target = place.closest(place.dataset.into ?? "[data-later]");
    if (target.dataset.live) {
      // live.js reads it: of two readers the older may answer last.
      target.dataset.region = place.dataset.later;
      target.dispatchEvent(new Event("later"));
      return;
    }
    const answer = await fetch(place.dataset.later).catch(() => null);
    // The link stays.
    if (!answer?.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const table = target.querySelector("table");
    if (!table) return target.replaceChildren(...page.body.childNodes);
    // Rows that are shown stay, and others come some a frame: all at once they would hold up who scrolls.
    const parts = [...page.querySelectorAll("tbody")].slice(table.tBodies.length);
    const heading = (of) => of.querySelector("table").parentNode.previousElementSibling;
    heading(target).replaceWith(heading(page));
    place.remove();
    const next = () => {
      if (!parts.length) return;
      table.append(parts.shift());
      requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  };
  const near = new IntersectionObserver(
    (seen) => {
      for (const { isIntersecting, target } of seen) if (isIntersecting) near.unobserve(target), load(target);
    },
    { rootMargin: "100%" },
  );
  document.querySelectorAll("[data-later]").forEach((place) => near.observe(place));
})();
