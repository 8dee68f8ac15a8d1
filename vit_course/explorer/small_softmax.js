"use strict";

/* Scores of random vectors and what the softmax makes of them: the width d is chosen, and whether
the scores are divided by √d.
*/
(() => {
  const { make, said } = vitDrawing;
  const { matrix, row, linear, softmax } = vitModel;
  const given = JSON.parse(document.getElementById("given").textContent);
  const { widths, count } = given;
  const widest = widths[widths.length - 1];
  const queries = numbers(given.queries),
    keys = numbers(given.keys); // (24, d) and (8, d)
  const state = { width: 0, divide: false, query: 0 };

  function numbers(text) {
    const letters = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
    const data = new Float32Array(bytes.buffer);
    return matrix(data.length / widest, widest, data);
  }

  /* The first d numbers of each row. */
  function first(x, d) {
    const y = matrix(x.rows, d);
    for (let i = 0; i < x.rows; i++) y.data.set(row(x, i).subarray(0, d), i * d);
    return y;
  }

  /* All queries: scores (24, 8), as they are or divided. */
  function scoresOf(d, divide) {
    const products = linear(first(queries, d), first(keys, d));
    const divisor = divide ? Math.sqrt(d) : 1;
    return matrix(
      products.rows,
      count,
      products.data.map((value) => value / divisor),
    );
  }

  const slider = make("input", { type: "range", min: 0, max: widths.length - 1, value: 0 });
  const width = make("output");
  const tick = make("input", { type: "checkbox" });
  const next = make("button", { type: "button", textContent: "Another query" });
  const which = make("span", { className: "small" });
  const words = make("p", { className: "words", "aria-live": "polite" });
  const mean = make("p", { className: "mean" });
  const body = make("tbody");

  slider.addEventListener("input", () => change({ width: Number(slider.value) }));
  tick.addEventListener("change", () => change({ divide: tick.checked }));
  next.addEventListener("click", () => change({ query: (state.query + 1) % queries.rows }));

  function change(changes) {
    Object.assign(state, changes);
    show();
  }

  function show() {
    const d = widths[state.width];
    const scores = scoresOf(d, state.divide),
      weights = softmax(scores);
    const mine = Array.from(row(weights, state.query)),
      its = Array.from(row(scores, state.query));
    const best = mine.indexOf(Math.max(...mine));
    // One scale for all widths, divided or not, so that growth is seen.
    const far = Math.max(
      ...widths.flatMap((each) => Array.from(row(scoresOf(each, false), state.query), Math.abs)),
    );
    body.replaceChildren(
      ...mine.map((weight, j) =>
        make(
          "tr",
          { className: j === best ? "largest" : "" },
          make("th", { scope: "row" }, `key ${j}`),
          make("td", { className: "track" }, bar(its[j] / far, true)),
          make("td", { className: "number score" }, said(its[j])),
          make("td", { className: "track" }, bar(weight, false)),
          make("td", { className: "number weight" }, weight.toFixed(3)),
        ),
      ),
    );
    width.textContent = `d = ${d}`;
    slider.setAttribute("aria-valuetext", `d = ${d}`);
    which.textContent = `query ${state.query + 1} of ${queries.rows}`;
    const how = state.divide ? `divided by √${d} = ${said(Math.sqrt(d))}` : "not divided";
    words.textContent = `d = ${d}, ${how}: the largest weight is ${mine[best].toFixed(3)}, at key ${best}.`;
    mean.textContent =
      `The mean of the largest weight over all ${queries.rows} queries is ` +
      `${meanLargest(weights).toFixed(3)}; if all keys shared evenly, it would be ` +
      `${(1 / count).toFixed(3)}.`;
  }

  function meanLargest(weights) {
    let sum = 0;
    for (let i = 0; i < weights.rows; i++) sum += Math.max(...row(weights, i));
    return sum / weights.rows;
  }

  /* A bar for a share of the whole track; one of two signs begins in its middle. */
  function bar(share, signed) {
    const box = { viewBox: "0 0 100 18", preserveAspectRatio: "none", "aria-hidden": "true" };
    const svg = part("svg", box);
    const zero = signed ? 50 : 0,
      far = signed ? 50 : 100;
    const end = zero + share * far;
    svg.append(
      part("rect", {
        x: Math.min(zero, end),
        y: 2,
        width: Math.abs(end - zero),
        height: 14,
        "vector-effect": "non-scaling-stroke",
      }),
      part("line", { x1: zero, y1: 0, x2: zero, y2: 18, "vector-effect": "non-scaling-stroke" }),
    );
    return svg;
  }

  function part(tag, properties) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(properties)) element.setAttribute(name, value);
    return element;
  }

  const head = ["", "score q·k", "", "weight", ""].map((name) =>
    name ? make("th", { scope: "col" }, name) : make("td"),
  );
  document.body.append(
    make(
      "div",
      { className: "row" },
      make("label", {}, "width", slider, width),
      make("label", {}, tick, "divide by √d"),
      next,
      which,
    ),
    make("table", { className: "bars" }, make("thead", {}, make("tr", {}, ...head)), body),
    words,
    mean,
  );
  show();
  document.documentElement.classList.add("live");
})();
