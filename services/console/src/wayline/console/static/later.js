// What is read where somebody comes near it; without scripts a link leads there.
"use strict";
(() => {
  const load = async (place) => {
    // Found first: a live page may lack the place once the answer is here.
    const target = place.closest(place.dataset.into ?? "[data-later]");
    const answer = await fetch(place.dataset.later).catch(() => null);
    // The link stays.
    if (!answer?.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (target.dataset.region) target.dataset.region = place.dataset.later;
    // The parts of a long table come one a frame: all at once they would hold up who scrolls. A live page has them by then.
    const parts = target.dataset.live ? [] : [...page.querySelectorAll("tbody ~ tbody ~ tbody ~ tbody")];
    const table = parts[0]?.parentNode;
    parts.forEach((part) => part.remove());
    target.replaceChildren(...page.body.childNodes);
    const next = () => {
      if (!parts.length) return;
      table.append(parts.shift());
      requestAnimationFrame(next);
    };
    next();
  };
  const near = new IntersectionObserver(
    (seen) => {
      for (const { isIntersecting, target } of seen) if (isIntersecting) near.unobserve(target), load(target);
    },
    { rootMargin: "100%" },
  );
  document.querySelectorAll("[data-later]").forEach((place) => near.observe(place));
})();
