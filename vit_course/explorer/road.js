"use strict";

/* The road of the picture through the model: a strip of stages, each with what it holds now, and the
one that is open in numbers, each of which says how it came about.
*/
const vitRoad = (() => {
  const { matrix, row, templates, looks } = vitModel;
  const { make, said, percent, table, shading, cells, enlarge, pictureOf, drawPixels, drawMap } =
    vitDrawing;
  const { config, weights, classes, grid, patches, state, change, tokenName, listen } = vitState;
  const { depth: L, num_heads: h, embed_dim: D, in_channels: C, patch_size: P } = config;
  const { height: H, width: W } = config;
  const K = classes.length;
  const N = patches + 1;
  const d = D / h;
  const NAMES = Array.from({ length: N }, (_, i) => (i ? String(i - 1) : "cls"));
  const kernel = templates(weights["patch_embed.proj.weight"], config);
  const OPEN = {
    ...{ photo, patches: embedding, "cls + positions": positions },
    ...{ "QKV heads": heads, attention, MLP: mlp, head },
  };
  const IN_BLOCK = ["QKV heads", "attention", "MLP"];
  const at = (x, i, j) => row(x, i)[j];
  const pick = (i) => change({ query: i });
  const fit = (long, count, most = 14) => Math.max(2, Math.min(most, Math.floor(long / count)));
  let figures = []; // of the open stage

  // What each stage shows: a sentence, and the options of its tables ------------------------------

  function photo(run) {
    const side = fit(200, Math.max(W, H));
    const linked = [];
    const names = { 1: ["pixels"], 3: ["red", "green", "blue"] }[C];
    const channel = (c) => {
      const x = matrix(H, W, run.pixels.subarray(c * H * W, (c + 1) * H * W));
      const place = [H >> 1, W >> 1];
      return {
        matrix: x,
        label: names?.[c] || `channel ${c}`,
        most: 1,
        side,
        tall: side,
        linked,
        place,
      };
    };
    return [
      `A picture is numbers, ${C > 1 ? `${C} to a pixel` : "one to a pixel"}: −1 is the darkest, 1 the brightest.`,
      ...Array.from({ length: C }, (_, c) => channel(c)),
    ];
  }

  const pointed = { query: -1, patch: 0, number: 0 }; // in the tokens: its patch, its template

  function embedding(run) {
    const bias = weights["patch_embed.proj.bias"].data;
    if (pointed.query !== state.query) pointed.patch = Math.max(state.query - 1, 0);
    pointed.query = state.query;
    const tokens = {
      matrix: run.embedded,
      label: "the patches' tokens",
      lit: state.query - 1,
      place: [pointed.patch, pointed.number],
      rows: NAMES.slice(1),
      pick: (i) => pick(i + 1),
      moved: (patch, number) => {
        Object.assign(pointed, { patch, number });
        tiles(run).forEach((tile, i) => figures[i].update(tile));
      },
      formula: (i, j) => {
        const [value, shift] = [at(run.embedded, i, j), bias[j]];
        return `${said(value)} = patch ${i} · template ${j} + bias = ${said(value - shift)} + ${said(shift)}`;
      },
    };
    const size = `${P}×${P} pixels${C > 1 ? ` in ${C} colours` : ""}, ${P * P * C} numbers,`;
    return [
      `A patch of ${size} meets ${D} templates: number times number, all added up, and a bias. ` +
        "Each sum is one number of the patch's token.",
      ...[...tiles(run), tokens],
    ];
  }

  /* The patch pointed at, the template, and number times number. */
  function tiles(run) {
    const { patch, number } = pointed;
    const side = fit(132, P, 28);
    const linked = [];
    const parts = [row(run.patches, patch), row(kernel, number)];
    const all = [...parts, parts[0].map((value, k) => value * parts[1][k])];
    const words = (k, p) => Array.from(all[k].subarray(p * C, p * C + C), said);
    const tile = (k, label, sum, formula) => {
      const x = matrix(P, P);
      x.data.forEach((_, p) =>
        all[k].subarray(p * C, p * C + C).forEach((v) => (x.data[p] += v / sum)),
      );
      const far = shading(all[k], true, k ? 0 : 1).far;
      const dye = (p) =>
        Array.from(all[k].subarray(p * C, p * C + C), (v) => (v / far + 1) * 127.5);
      const paint = C === 3 && k < 2 ? (i, j) => dye(i * P + j) : null;
      const ask = (i, j) => formula(i * P + j);
      return { matrix: x, label, most: k ? 0 : 1, side, tall: side, linked, paint, formula: ask };
    };
    return [
      tile(0, `patch ${patch}`, C, (p) => `its pixel ${p}: ${words(0, p).join(", ")}`),
      tile(1, `template ${number}`, C, (p) => `for pixel ${p}: ${words(1, p).join(", ")}`),
      tile(2, "patch times template", 1, (p) => {
        const products = words(0, p).map((value, c) => `${value} · ${words(1, p)[c]}`);
        return `${products.join(" + ")}, one part of the sum`;
      }),
    ];
  }

  function positions(run) {
    const { query, without } = state;
    const place = weights["tokens.pos_embed"];
    const of = Math.max(query, 1);
    const alike = matrix(grid.rows, grid.cols);
    alike.data.forEach((_, i) => (alike.data[i] = cosine(row(place, of), row(place, i + 1))));
    const side = fit(200, Math.max(grid.rows, grid.cols), 40);
    return [
      "The cls token goes in front, and " +
        (without.positions
          ? "the embedding of each token's place is left out."
          : "each token gets the embedding of its place added."),
      {
        matrix: alike,
        label: `how like the place of patch ${of - 1} the others are`,
        ...{
          most: 1,
          side,
          tall: side,
          place: [Math.floor((of - 1) / grid.cols), (of - 1) % grid.cols],
        },
        formula: (i, j) =>
          `cosine with the place of patch ${i * grid.cols + j}: ${said(at(alike, i, j))}`,
        pick: (i, j) => pick(i * grid.cols + j + 1),
      },
      {
        ...ofTokens(run.start, "tokens, cls first"),
        formula: (i, j) => {
          const own = i ? at(run.embedded, i - 1, j) : weights["tokens.cls_token"].data[j];
          const sum = `${said(at(run.start, i, j))} = ${i ? "its patch's" : "cls's"} ${said(own)}`;
          if (without.positions) return `${sum}; its place is left out`;
          return `${sum} + its place's ${said(at(place, i, j))}, in ${tokenName(i)}`;
        },
      },
    ];
  }

  /* A table with a row for each token; a click lets that token ask. */
  function ofTokens(x, label) {
    return { matrix: x, label, lit: state.query, rowName: tokenName, rows: NAMES, pick };
  }

  function cosine(a, b) {
    const dot = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0);
    return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b) || 1);
  }

  /* A word before all else, where a block is left out and its numbers reach nothing. */
  function leftOut(run) {
    const { block } = state;
    return run.blocks[block].gone
      ? `Block ${block} is left out: what stands here is what it would do. `
      : "";
  }

  /* "norm of ", where that norm is not left out. */
  function normed(part) {
    return state.without.norms.includes(`blocks.${state.block}.${part}`) ? "" : "norm of ";
  }

  function heads(run) {
    const { block, head } = state;
    const bias = weights[`blocks.${block}.attn.qkv.bias`];
    const linked = [];
    const one = (x, which, label) => ({
      ...ofTokens(x, label),
      ...{ linked, side: fit(220, d) },
      formula: (i, j) => {
        const line = (which * h + head) * d + j;
        const [value, shift] = [at(x, i, j), bias ? bias.data[line] : 0];
        const sum = `${said(value)} = ${normed("norm1")}${tokenName(i)} · row ${line} of the qkv weight`;
        return bias ? `${sum} + bias = ${said(value - shift)} + ${said(shift)}` : sum;
      },
    });
    const { q, k, v } = run.blocks[block].heads[head];
    return [
      leftOut(run) +
        `Head ${head} of block ${block} makes three rows of ${d} numbers from each token` +
        (normed("norm1") ? ", normed." : ", as it is: norm1 is left out."),
      one(q, 0, "query q: what it asks"),
      one(k, 1, "key k: what it is found by"),
      one(v, 2, "value v: what it hands out"),
    ];
  }

  /* A row for each token that asks; of many tokens only the one that is chosen, as a map. */
  function attention(run) {
    const { query, block, head, without } = state;
    const { products, scores, weights: shares, mixed, v, gone } = run.blocks[block].heads[head];
    const many = N > 40;
    const pair = (i, j) => (many ? [query, i * grid.cols + j + 1] : [i, j]);
    const side = many ? fit(200, Math.max(grid.rows, grid.cols), 40) : fit(270, N);
    const linked = [];
    const one = (x, label, formula, signed = true) => ({
      matrix: many ? matrix(grid.rows, grid.cols, row(x, query).subarray(1)) : x,
      ...{
        label: many ? `${label}, of ${tokenName(query)}` : label,
        signed,
        side,
        tall: side,
        linked,
      },
      ...(many
        ? { place: [0, 0], pick: (i, j) => pick(pair(i, j)[1]) }
        : { lit: query, rows: NAMES, columns: side < 14 ? [] : NAMES, pick }),
      formula: (i, j) => formula(...pair(i, j)),
    });
    const product = (i, j) => `q of ${tokenName(i)} · k of ${tokenName(j)}`;
    const score = (i, j) => {
      const sum = `${said(at(scores, i, j))} = ${product(i, j)}`;
      if (at(scores, i, j) === -Infinity) return `−∞: ${tokenName(j)} is hidden from cls`;
      if (without.scale) return `${sum}, and √d is left out`;
      return `${sum} / √${d} = ${said(at(products, i, j))} / ${said(Math.sqrt(d))}`;
    };
    const mixture = (_, j) => {
      if (gone) return "0: this head is left out";
      const parts = largest(row(shares, query), 2).map(
        (t) => `${said(at(shares, query, t))} · ${said(at(v, t, j))} of ${tokenName(t)}`,
      );
      return `${said(at(mixed, query, j))} = ${parts.join(" + ")} + ${N - parts.length} more`;
    };
    return [
      leftOut(run) +
        `The query of ${many ? tokenName(query) : "each token"} meets all keys: q · k. ` +
        "Softmax makes shares of the scores, 100% in all, and by these the values are mixed.",
      taken(run, row(shares, query)),
      one(products, "q · k", (i, j) => `${said(at(products, i, j))} = ${product(i, j)}`),
      one(scores, without.scale ? "scores = q · k" : "scores = q · k / √d", score),
      one(shares, "weights = softmax", (i, j) => share(shares, scores, i, j), false),
      {
        matrix: matrix(1, d, row(mixed, query)),
        label: `mixture of the values, for ${tokenName(query)}`,
        ...{ side: fit(270, d, 20), tall: 20, formula: mixture },
      },
    ];
  }

  /* A share and how softmax made it; the powers may be very large or small. */
  function share(shares, scores, i, j) {
    const power = (v) => (v && (v < 0.01 || v >= 1e6) ? v.toExponential(1) : said(v));
    const sum = row(scores, i).reduce((total, score) => total + Math.exp(score), 0);
    const own = at(scores, i, j);
    return (
      `${percent(at(shares, i, j))} = e^${said(own)} / the sum of all such = ` +
      `${power(Math.exp(own))} / ${power(sum)}`
    );
  }

  /* The places of the largest, first of all. */
  function largest(values, count) {
    const order = Array.from(values.keys()).sort((a, b) => values[b] - values[a]);
    return order.slice(0, count);
  }

  /* A picture with lines from the asking token to those it takes most from. */
  function taken(run, shares) {
    const { query } = state;
    const others = shares.map((value, t) => (t === query ? 0 : value));
    const top = largest(others, 8).filter((t) => others[t] > 0);
    const first = top.slice(0, 3).map((t) => `${tokenName(t)} (${percent(shares[t])})`);
    const scale = 232 / Math.max(H, W);
    const above = 30; // where cls has its place
    const middle = (t) => {
      const [r, c] = [Math.floor((t - 1) / grid.cols), (t - 1) % grid.cols];
      return t ? [(c + 0.5) * P * scale, above + (r + 0.5) * P * scale] : [(W * scale) / 2, 14];
    };
    return {
      label: "what it takes, thick lines much",
      size: [W * scale, above + H * scale],
      words: `${tokenName(query)} takes ${first.length ? `most from ${first.join(", ")}` : "nothing"}; ${percent(shares[query])} from itself.`,
      draw(pen) {
        enlarge(pen, pictureOf(run.pixels, config), 0, above, W * scale, H * scale);
        for (const [colour, more] of [
          ["#fff", 2],
          ["#d55e00", 0],
        ]) {
          // prettier-ignore
          pen.strokeStyle = colour;
          for (const t of top) {
            pen.lineWidth = more + 1 + (9 * shares[t]) / others[top[0]];
            pen.beginPath();
            pen.moveTo(...middle(query));
            pen.lineTo(...middle(t));
            pen.stroke();
          }
        }
        for (const t of [query, 0]) {
          pen.fillStyle = t ? "#0072b2" : "#e69f00";
          pen.beginPath();
          pen.arc(...middle(t), t ? 7 : 13, 0, 7);
          pen.fill();
        }
        pen.fillStyle = "#000";
        pen.font = "13px sans-serif";
        pen.textAlign = "center";
        pen.fillText("cls", (W * scale) / 2, 18);
      },
    };
  }

  function mlp(run) {
    const { query, block, without, run: { whole } } = state; // prettier-ignore
    const { made } = run.blocks[block];
    const bias = weights[`blocks.${block}.mlp.fc2.bias`].data;
    const width = weights[`blocks.${block}.mlp.fc1.weight`].rows;
    const way = (one) => one.blocks.flatMap((b) => [b.gone ? b.input : b.middle, b.output]);
    const stream = [run.start, ...way(run)];
    const lengths = matrix(N, stream.length);
    lengths.data.forEach((_, k) => {
      const i = Math.floor(k / stream.length);
      lengths.data[k] = Math.hypot(...row(stream[k % stream.length], i));
    });
    // One scale with the whole model's lengths, so that what is lost is seen.
    const usual = way(whole).map((x) => Math.max(...NAMES.map((_, i) => Math.hypot(...row(x, i)))));
    const side = fit(620, stream.length, 44);
    const did = (i, s) => {
      const { gone, attended, made } = run.blocks[(s - 1) >> 1];
      if (gone) return "the block is left out";
      if (without.residuals) return "it took the stream's place";
      return `it added a vector of length ${said(Math.hypot(...row(s % 2 ? attended : made, i)))}`;
    };
    return [
      leftOut(run) +
        `Each token alone, ${normed("norm2") ? "normed" : "as it is (norm2 is left out)"}: to ` +
        `${width} numbers, bent by GELU, and back to ${D}; ` +
        (without.residuals ? "that takes the stream's place." : "that is added to the stream."),
      {
        ...ofTokens(made, without.residuals ? "what it makes" : "what it adds to the stream"),
        formula: (i, j) =>
          `${said(at(made, i, j))} = ${tokenName(i)} after GELU · row ${j} of fc2 + bias = ` +
          `${said(at(made, i, j) - bias[j])} + ${said(bias[j])}`,
      },
      {
        ...ofTokens(lengths, "each token's length on its way through the stream"),
        ...{ signed: false, most: Math.max(...lengths.data, ...usual), side },
        columns:
          side < 36
            ? []
            : stream.map((_, s) => (s ? `${s % 2 ? "att" : "MLP"} ${(s - 1) >> 1}` : "start")),
        place: [query, 2 * block + 2],
        formula: (i, s) => {
          const now = said(at(lengths, i, s));
          if (!s) return `${tokenName(i)} starts with length ${now}`;
          const part = s % 2 ? "attention" : "MLP";
          return `${tokenName(i)} after block ${(s - 1) >> 1}'s ${part}: length ${now}; ${did(i, s)}`;
        },
      },
    ];
  }

  function head(run) {
    const bias = weights["head.bias"].data;
    const what = config.pool === "mean" ? "the mean of the patch tokens" : "cls";
    const last = state.without.norms.includes("norm")
      ? "Without the last norm"
      : "After the last norm";
    const few = K <= 20; // then a row each, with its name
    const linked = [];
    const all = run.logits.data;
    const best = vitMeasures.best(all);
    const one = (x, label, formula) => ({
      matrix: few ? matrix(K, 1, x.data) : x,
      ...{ label, linked, side: few ? 90 : fit(600, K, 40), tall: 20 },
      ...{ rows: few ? classes : [], place: few ? [best, 0] : [0, best] },
      formula: (i, j) => `${classes[i + j]}: ${formula(i + j)}`,
    });
    const logit = (j) =>
      `${said(all[j])} = ${what} · row ${j} + bias = ${said(all[j] - bias[j])} + ${said(bias[j])}`;
    return [
      `${last}, ${what} meets a row of weights for each class; softmax makes shares of the sums.`,
      one(run.logits, "logits", logit),
      {
        ...one(run.probabilities, "probabilities", (j) =>
          share(run.probabilities, run.logits, 0, j),
        ),
        ...{ signed: false, most: 1 },
      },
    ];
  }

  /* A drawing that is not asked; it can be shown anew as a table can. */
  function chart({ size: [width, height], ...first }) {
    const canvas = make("canvas", {
      width: Math.round(width),
      height: Math.round(height),
      role: "img",
    });
    const [title, words] = [make("figcaption"), make("p", { className: "formula" })];
    const update = (now) => {
      const pen = canvas.getContext("2d");
      pen.clearRect(0, 0, canvas.width, canvas.height);
      now.draw(pen);
      [title.textContent, words.textContent] = [now.label, now.words];
      canvas.setAttribute("aria-label", now.words);
    };
    update(first);
    return make("figure", { className: "table", update }, title, canvas, words);
  }

  // The strip: what each stage holds, small -------------------------------------------------------

  function cut(canvas, run) {
    const pen = canvas.getContext("2d");
    const [w, high] = [canvas.width / grid.cols, canvas.height / grid.rows];
    const small = pictureOf(run.pixels, config);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    for (let i = 0; i < patches; i++) {
      const [r, c] = [Math.floor(i / grid.cols), i % grid.cols];
      enlarge(pen, small, c * P, r * P, P, P, c * w + 2, r * high + 2, w - 4, high - 4);
    }
  }

  /* The tokens as coloured cells; cls above, beside it its colour, beside the others the patches'. */
  function tokens(canvas, { start }) {
    const pen = canvas.getContext("2d");
    const shade = shading(start.data);
    const small = cells(N, D, (i, j) => shade.of(at(start, i, j)));
    const { width, height } = canvas;
    pen.fillStyle = "#e69f00";
    pen.fillRect(0, 0, 12, 18);
    pen.fillStyle = "#0072b2";
    pen.fillRect(0, 24, 12, height - 24);
    enlarge(pen, small, 0, 0, D, 1, 16, 0, width - 16, 18);
    enlarge(pen, small, 0, 1, D, patches, 16, 24, width - 16, height - 24);
  }

  function bars(canvas, { logits: { data } }) {
    const pen = canvas.getContext("2d");
    const { width, height } = canvas;
    const far = Math.max(...data.map(Math.abs)) || 1;
    const best = vitMeasures.best(data);
    pen.clearRect(0, 0, width, height);
    data.forEach((value, i) => {
      pen.fillStyle = i === best ? "#e69f00" : "#888";
      const long = ((value / far) * width) / 2;
      pen.fillRect(width / 2, (i * height) / K, long || 1, Math.max(1, height / K - 3));
    });
  }

  /* Of each block what the asking token takes from each patch, on one scale. */
  function blocks(canvases, run) {
    const all = canvases.map((_, b) => looks(run, "mean", state.query, b).subarray(1));
    const most = Math.max(...all.map((shares) => Math.max(...shares)));
    canvases.forEach((canvas, b) => {
      drawMap(canvas, run.pixels, config, all[b], most, state.query - 1);
      canvas.parentNode.classList.toggle("gone", Boolean(run.blocks[b].gone));
      canvas.parentNode.lastChild.textContent = run.blocks[b].gone ? "left out" : `${N}×${D}`;
    });
  }

  // What is chosen --------------------------------------------------------------------------------

  /* Tabs in a list; arrow keys, Home and End go from one to the other. `open(i)` marks the open one. */
  function tabs(list, contents, panel, choose) {
    const all = contents.map((children, i) => {
      const tab = make("button", { type: "button", role: "tab", "aria-controls": panel.id });
      tab.append(...children);
      tab.addEventListener("click", () => choose(i));
      return tab;
    });
    list.setAttribute("role", "tablist");
    list.addEventListener("keydown", (event) => {
      const now = all.indexOf(document.activeElement);
      const ways = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: all.length - 1 };
      const next = (ways[event.key] + all.length) % all.length;
      if (isNaN(next)) return;
      event.preventDefault();
      all[next].focus();
      choose(next);
    });
    list.append(...all);
    return (open) =>
      all.forEach((tab, i) => {
        tab.setAttribute("aria-selected", String(i === open));
        tab.tabIndex = i === open ? 0 : -1;
      });
  }

  /* A choice by name of what stands in the state as a number. */
  function chooser(label, names, key) {
    const select = make("select");
    names.forEach((name, i) => select.append(make("option", { value: i, textContent: name })));
    select.addEventListener("change", () => change({ [key]: Number(select.value) }));
    listen(key, () => (select.value = state[key]));
    return make("label", {}, label, select);
  }

  function build(strip, panel) {
    const long = 176 / Math.max(H, W); // twice as many pixels as it is shown with, for sharp screens
    const thumb = (width = W * long, height = H * long) => {
      const canvas = make("canvas", { width, height, "aria-hidden": "true" });
      canvas.style.width = `${canvas.width / 2}px`;
      return canvas;
    };
    const maps = Array.from({ length: L }, () => thumb());
    const stops = [
      ["photo", thumb(), `${C}×${H}×${W}`, (canvas, run) => drawPixels(canvas, run.pixels, config)],
      ["patches", thumb(), `${patches}×${D}`, cut],
      ["cls + positions", thumb(176, 176), `${N}×${D}`, tokens],
      ...maps.map((canvas, b) => [`block ${b}`, canvas, `${N}×${D}`, null]),
      ["head", thumb(176, 176), `${K}`, bars],
    ];
    const inside = make("div", { id: "numbers", role: "tabpanel" });
    const contents = stops.map(([name, canvas, shape]) => [canvas, make("b", {}, name), make("span", {}, shape)]); // prettier-ignore
    const mark = tabs(strip, contents, panel, (i) => {
      const block = i - 3;
      if (!maps[block]) change({ stage: stops[i][0] });
      else change({ block, stage: IN_BLOCK.includes(state.stage) ? state.stage : "attention" });
    });
    const list = make("div", { className: "row", "aria-label": "inside the block" });
    const markInside = tabs(list, IN_BLOCK.map((name) => [name]), inside, (i) => change({ stage: IN_BLOCK[i] })); // prettier-ignore
    const which = chooser("head", [...Array(h).keys()], "head");
    const asker = chooser(
      "who asks",
      Array.from(NAMES, (_, i) => tokenName(i)),
      "query",
    );
    const above = make("div", { className: "row" }, list, which, asker);
    const sentence = make("p");
    const place = make("div", { className: "side-by-side" });
    const hint =
      "Point at a number, or go there with the arrow keys: it says how it came about. All are rounded.";
    inside.append(sentence, make("p", { className: "small" }, hint), place);
    strip.setAttribute("aria-label", "stages");
    panel.setAttribute("role", "tabpanel");
    panel.append(above, inside);
    listen("stage block", ({ stage, block }) => {
      const part = IN_BLOCK.indexOf(stage);
      const open = part < 0 ? stops.findIndex(([name]) => name === stage) : 3 + block;
      mark(open);
      markInside(part);
      above.hidden = part < 0;
      which.hidden = stage === "MLP";
      panel.setAttribute("aria-label", stops[open][0]);
      inside.setAttribute("aria-label", stage);
    });
    listen("run", ({ run }) => stops.forEach(([, canvas, , draw]) => draw?.(canvas, run.shown)));
    listen("run query", ({ run }) => blocks(maps, run.shown));
    let opened = ""; // the stage whose tables stand there
    listen("run stage block head query", ({ run, stage }) => {
      const [text, ...parts] = OPEN[stage](run.shown);
      sentence.textContent = text;
      if (opened === stage) return parts.forEach((part, i) => figures[i].update(part));
      opened = stage;
      figures = parts.map((part) => (part.matrix ? table : chart)(part));
      place.replaceChildren(...figures);
    });
  }

  return { build, chooser };
})();
