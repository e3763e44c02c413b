// Draws a figure's table: a bar for each row, and a line for a second column. Without scripts the table is what is read.
"use strict";
(() => {
  const HEIGHT = 190;
  const LABELS_MIN_PX = 74;
  const ink = (figure, name) => getComputedStyle(figure.querySelector(`.ink-${name}`)).color;

  const short = (value) => (value >= 1 || value === 0 ? `$${value.toFixed(2)}` : `$${value.toPrecision(2)}`);

  const draw = (figure) => {
    const rows = [...figure.querySelectorAll("tbody tr")];
    const column = (name) => rows.map((row) => Number(row.dataset[name] ?? Number.NaN));
    const titles = figure.dataset.chart.split("|");
    const names = rows.map((row) => row.dataset.name);
    const data = [rows.map((_, at) => at), column("y"), ...(titles[1] ? [column("z")] : [])];
    const place = figure.querySelector(".plot");
    place.replaceChildren();
    const width = place.clientWidth;
    const every = Math.ceil(rows.length / Math.max(1, Math.floor(width / LABELS_MIN_PX)));
    const axis = { stroke: () => ink(figure, "text"), ticks: { show: false } };
    const plot = new uPlot(
      {
        width,
        height: HEIGHT,
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false } },
        scales: { x: { time: false, range: [-0.6, rows.length - 0.4] }, y: { range: (_, __, most) => [0, most * 1.08 || 1] } },
        axes: [
          { ...axis, grid: { show: false }, splits: () => data[0].filter((at) => at % every === 0), values: (_, at) => at.map((one) => names[one]) },
          { ...axis, size: 80, grid: { stroke: () => ink(figure, "line") }, values: (_, all) => all.map(short) },
        ],
        series: [
          {},
          { label: titles[0], stroke: () => ink(figure, "bar"), fill: () => ink(figure, "bar"), paths: uPlot.paths.bars({ size: [0.72, 48] }), points: { show: false } },
          ...(titles[1] ? [{ label: titles[1], stroke: () => ink(figure, "mark"), paths: () => null, points: { show: true, size: 8, fill: () => ink(figure, "mark") } }] : []),
        ],
        hooks: {
          setCursor: [
            ({ cursor: { idx } }) => {
              const row = rows[idx];
              figure.querySelector("[data-reads]").textContent = row ? row.dataset.reads : "";
              place.classList.toggle("leads", Boolean(row?.querySelector("a")));
            },
          ],
        },
      },
      data,
      place,
    );
    plot.over.addEventListener("click", () => rows[plot.cursor.idx]?.querySelector("a")?.click());
  };

  const figures = document.querySelectorAll("[data-chart]");
  // To draw takes longer than all else on a page: it is done near by.
  const near = new IntersectionObserver(
    (seen) => seen.forEach((one) => one.isIntersecting && (near.unobserve(one.target), draw(one.target))),
    { rootMargin: "100%" },
  );
  const all = () => figures.forEach((figure) => near.observe(figure));
  figures.forEach((figure) => (figure.querySelector("details").open = false));
  let width = innerWidth;
  addEventListener("resize", () => innerWidth !== width && ((width = innerWidth), all()));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
  all();
})();
