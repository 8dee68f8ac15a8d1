"use strict";

/* Take it out, and which block decides. */
const vitParts = (() => {
  const { make, percent, table } = vitDrawing;
  const { config, weights, classes, labels, given, state, change } = vitState;
  const { best, lens } = vitMeasures;
  const at = (id) => document.getElementById(id);

  /* Ask for a measure, with a bar behind `button`, and one that stops it: then it gives null. */
  function measure(button, name, args) {
    const bar = make("progress", { max: 1, value: 0, "aria-label": "how far it is" });
    const job = vitState.work(name, args, (share) => (bar.value = share));
    const onclick = () => (button.focus(), job.stop());
    const stop = make("button", { type: "button", textContent: "Stop", onclick });
    button.after(bar, stop);
    const ended = job.finally(() => (bar.remove(), stop.remove()));
    const stopped = (error) => (error.message === "stopped" ? null : Promise.reject(error));
    return Object.assign(ended.catch(stopped), { stop: job.stop });
  }

  /* A box to tick for what is out: a switch of `without`, or an item of one of its lists. */
  function box(input, part, item) {
    const others = () => state.without[part].filter((other) => String(other) !== String(item));
    input.addEventListener("change", () => {
      const list = item === undefined ? null : others().concat(input.checked ? [item] : []);
      change({ without: { ...state.without, [part]: list ?? input.checked } });
    });
    vitState.listen("without", ({ without }) => {
      input.checked = item === undefined ? without[part] : others().length < without[part].length;
    });
    return input;
  }

  function buildSwitches(place) {
    for (const part of ["positions", "scale", "residuals"]) box(at(`without-${part}`), part);
    box(at("without-norm"), "norms", "norm");
    const heads = Array.from({ length: config.num_heads }, (_, j) => `head ${j}`);
    const columns = ["all of it", "norm1", "norm2", ...heads];
    const line = (name, tag, cells) =>
      make("tr", {}, make("th", {}, name), ...cells.map((cell) => make(tag, {}, cell)));
    place.querySelector("table").append(line("", "th", columns));
    for (let b = 0; b < config.depth; b++) {
      const norms = ["norm1", "norm2"].map((part) => ["norms", `blocks.${b}.${part}`]);
      const items = [["blocks", b], ...norms, ...heads.map((_, j) => ["heads", [b, j]])];
      const name = (c) => `without block ${b}, ${columns[c]}`;
      const tick = (c) => make("input", { type: "checkbox", "aria-label": name(c) });
      const boxes = items.map((item, c) => box(tick(c), ...item));
      place.querySelector("table").append(line(`block ${b}`, "td", boxes));
    }
    at("put-back").onclick = () => change({ without: vitState.nothingOut(), covered: new Set() });
    vitState.listen("run", ({ run }) => {
      const [now, whole] = [run.shown, run.whole].map(({ probabilities: { data } }) => data);
      const says = (shares) => `${classes[best(shares)]} (${percent(Math.max(...shares))})`;
      at("so").textContent = run.out ? `Now it says ${says(now)}; whole, ${says(whole)}.` : "";
    });

    // On all examples; what is said holds until something else is out.
    let job = null;
    at("try-all").hidden = labels.length < 20; // counts of so few say nothing
    at("try-all").onclick = async () => {
      job?.stop();
      const { without, covered, run } = state;
      job = measure(at("try-all"), "count", { without, covered: [...covered] });
      const count = await job;
      if (!count || without !== state.without || covered !== state.covered) return;
      const kind = given.unseen ? "held-out pictures" : "examples";
      const after = run.out ? `${count.after} with this out or covered` : "nothing is out";
      at("found").textContent =
        `Of ${count.of} ${kind}, it gets ${count.before} right when whole; ${after}.`;
    };
    vitState.listen("without covered", () => {
      job?.stop();
      at("found").textContent = "";
    });
  }

  /* The logit lens: what the head says of the stream before block 0 and after each block. */
  function buildLens() {
    let [figure, shown] = [null, ""]; // the table, and its columns
    vitState.listen("run", ({ run }) => {
      const all = lens(run.shown, weights, config);
      const last = all[config.depth];
      const top = best(last);
      const from = all.findLastIndex((shares) => best(shares) !== top) + 1;
      const rows = all.map((_, i) => (i ? `after block ${i - 1}` : "before block 0"));
      const when = rows[from] + (from < config.depth ? ", and from then on" : ", not before");
      at("stands").textContent = `The answer, ${classes[top]}, is the most probable ${when}.`;
      at("stands").hidden = vitState.isEmpty();
      const order = vitAnswer.likeliest(last);
      const columns = order.map((k) => classes[k]);
      const data = Float32Array.from(all.flatMap((shares) => order.map((k) => shares[k])));
      const side = 8 * Math.min(11, Math.max(3, ...columns.map(({ length }) => length)));
      const matrix = { rows: rows.length, cols: order.length, data };
      const formula = (i, j) => `${rows[i]}, ${columns[j]}: ${percent(all[i][order[j]])}`;
      const place = [config.depth, order.indexOf(top)];
      const what = { matrix, label: "what the head says", rows, columns, formula, place };
      const options = { ...what, side, tall: 24, signed: false, most: 1 };
      if (shown === String(columns)) return figure.update(options); // it keeps the focus
      [figure, shown] = [table(options), String(columns)];
      at("readings").replaceChildren(figure);
    });
  }

  return { measure, buildSwitches, buildLens };
})();
