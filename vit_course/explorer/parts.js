"use strict";

/* Take it out, and which block decides. */
const vitParts = (() => {
  const { make, percent, table } = vitDrawing;
  const { config, weights, classes, labels, ink, given, state, change } = vitState;
  const { best, lens } = vitMeasures;
  const at = (id) => document.getElementById(id);

  /* Ask for a measure. A bar stands in `place` meanwhile, and a button that stops it: it gives null. */
  function measure(asker, place, name, args) {
    const bar = make("progress", { max: 1, value: 0, "aria-label": "how far it is" });
    const stop = make("button", { type: "button", textContent: "Stop" });
    const job = vitState.work(name, args, (share) => (bar.value = share));
    stop.addEventListener("click", () => (asker.focus(), job.stop()));
    place.append(bar, stop);
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
    const line = (first, tag, cells) =>
      make("tr", {}, make("th", {}, first), ...cells.map((cell) => make(tag, {}, cell)));
    place.querySelector("table").append(line("", "th", columns));
    for (let b = 0; b < config.depth; b++) {
      const norms = ["norm1", "norm2"].map((part) => ["norms", `blocks.${b}.${part}`]);
      const items = [["blocks", b], ...norms, ...heads.map((_, j) => ["heads", [b, j]])];
      const boxes = items.map((item, c) => {
        const name = `without block ${b}, ${columns[c]}`;
        return box(make("input", { type: "checkbox", "aria-label": name }), ...item);
      });
      place.querySelector("table").append(line(`block ${b}`, "td", boxes));
    }
    at("put-back").addEventListener("click", () =>
      change({ without: vitState.nothingOut(), covered: new Set() }),
    );
    at("hide").addEventListener("click", () => {
      change({ tool: state.tool !== "hide" ? "hide" : ink ? "draw" : "cover" });
      if (state.tool === "hide") at("picture").focus();
    });
    vitState.listen("tool", ({ tool }) => {
      at("hiding").hidden = tool !== "hide";
      at("hide").setAttribute("aria-pressed", String(tool === "hide"));
    });
    buildCount(at("try-all"), at("found"));
  }

  /* How many of the examples it names with this out. */
  function buildCount(ask, found) {
    let job = null;
    ask.hidden = !labels.length;
    ask.addEventListener("click", async () => {
      job?.stop();
      const { without, covered, run } = state;
      job = measure(ask, at("trying"), "count", { without, covered: [...covered] });
      const count = await job;
      if (!count || without !== state.without || covered !== state.covered) return;
      const kind = given.unseen ? "held-out pictures" : "examples";
      const now = run.out ? "with this out or covered" : "again: nothing is out";
      found.textContent =
        `Of ${count.of} ${kind} it names ${count.before} rightly when whole, ` +
        `and ${count.after} ${now}.`;
    });
    vitState.listen("without covered", () => {
      job?.stop();
      found.textContent = "";
    });
  }

  /* The logit lens: what the head says of the stream before block 0 and after each block. */
  function buildLens() {
    vitState.listen("run", ({ run }) => {
      const all = lens(run.shown, weights, config);
      const [last] = all.slice(-1);
      const answer = best(last);
      const from = all.findLastIndex((shares) => best(shares) !== answer) + 1;
      const rows = all.map((_, i) => (i ? `after block ${i - 1}` : "before block 0"));
      const likely = [...last.keys()].sort((a, b) => last[b] - last[a]).slice(0, 10);
      const order = likely.sort((a, b) => a - b);
      const columns = order.map((k) => classes[k]);
      const data = Float32Array.from(all.flatMap((shares) => order.map((k) => shares[k])));
      const matrix = { rows: rows.length, cols: order.length, data };
      const side = 8 * Math.min(11, Math.max(4, ...columns.map(({ length }) => length)));
      const formula = (i, j) => `${rows[i]}, ${columns[j]}: ${percent(all[i][order[j]])}`;
      const look = { rows, columns, formula, signed: false, most: 1, side, tall: 24 };
      at("readings").replaceChildren(table({ matrix, label: "probabilities", ...look }));
      at("stands").textContent = `The answer, ${classes[answer]}, stands there from ${rows[from]} on.`;
      at("stands").hidden = vitState.isEmpty();
    });
  }

  return { measure, buildSwitches, buildLens };
})();
