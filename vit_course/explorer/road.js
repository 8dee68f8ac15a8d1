"use strict";

/* The road of the picture through the model: a strip of stages, each with what it holds now, and the
one that is open in numbers, each of which says how it came about.
*/
const vitRoad = (() => {
  const { matrix, row, templates, looks } = vitModel;
  const { make, said, percent, table, shading, cells, step } = vitDrawing;
  const { enlarge, pictureOf, drawPixels, drawMap, frame } = vitDrawing;
  const { config, weights, classes, grid, patches, state, change, tokenName, listen } = vitState;
  const { depth: L, num_heads: h, embed_dim: D, in_channels: C, patch_size: P } = config;
  const { height: H, width: W } = config;
  const N = patches + 1;
  const d = D / h;
  const NAMES = Array.from({ length: N }, (_, i) => (i ? String(i - 1) : "cls"));
  const IN_BLOCK = { "QKV heads": heads, attention, MLP: mlp };
  const OPEN = { photo, patches: embedding, "cls + positions": positions, ...IN_BLOCK, head };
  const kernel = templates(weights["patch_embed.proj.weight"], config);
  const at = (x, i, j) => row(x, i)[j];
  const pick = (i) => change({ query: i });
  const spot = (i) => [Math.floor(i / grid.cols), i % grid.cols]; // of a patch
  const fit = (long, count, most) => Math.max(2, Math.min(most, Math.floor(long / count)));
  let figures = []; // of the open stage

  // What each stage shows: a sentence, and the options of its tables ------------------------------

  /* Options of cells as high as wide, at most `most` pixels, all together `long`. */
  function square(x, label, formula, long, most, more) {
    const side = fit(long, Math.max(x.rows, x.cols), most);
    return { matrix: x, label, formula, side, tall: side, ...more };
  }

  /* Of a row for each token; a click lets that token ask. */
  function ofTokens(x, label, formula, more) {
    return { matrix: x, label, formula, lit: state.query, rows: NAMES, pick, ...more };
  }

  /* How a number came about that is a product with a weight's row, and a bias, where there is one. */
  function product(value, what, bias) {
    const sum = `${said(value)} = ${what}`;
    return bias === undefined ? sum : `${sum} + bias = ${said(value - bias)} + ${said(bias)}`;
  }

  /* "norm of ", where that norm is not left out. */
  function normed(part) {
    return state.without.norms.includes(`blocks.${state.block}.${part}`) ? "" : "norm of ";
  }

  function photo({ pixels }) {
    const more = { most: 1, linked: [], place: [H >> 1, W >> 1] };
    const channel = (name, c) =>
      square(matrix(H, W, pixels.subarray(c * H * W, (c + 1) * H * W)), name, null, 200, 16, more);
    const names =
      C === 3
        ? ["red", "green", "blue"]
        : Array.from(Array(C), (_, c) => (C > 1 ? `channel ${c}` : "brightness"));
    return ["A picture is numbers: −1 is the darkest, 1 the brightest.", ...names.map(channel)];
  }

  const pointed = { query: -1, patch: 0, number: 0 }; // in the tokens: its patch, its template

  function embedding(run) {
    const { query } = state;
    if (pointed.query !== query)
      Object.assign(pointed, { query, patch: query ? query - 1 : patches >> 1 });
    const formula = (i, j) =>
      product(at(run.embedded, i, j), `patch ${i} · template ${j}`, weights["patch_embed.proj.bias"].data[j]); // prettier-ignore
    const tokens = ofTokens(run.embedded, "the patches' tokens", formula, {
      lit: query - 1,
      place: [pointed.patch, pointed.number],
      rows: NAMES.slice(1),
      pick: (i) => pick(i + 1),
      moved: (patch, number) => {
        Object.assign(pointed, { patch, number });
        tiles(run).forEach((tile, i) => figures[i].update(tile));
      },
    });
    const text = `Each patch, ${P * P * C} numbers, meets ${D} templates: number times number, all added up, and a bias.`; // prettier-ignore
    return [`${text} Each sum is one number of its token.`, ...tiles(run), tokens];
  }

  /* The patch pointed at, the template, and number times number; what has three colours, in them. */
  function tiles(run) {
    const { patch, number } = pointed;
    const [a, b] = [row(run.patches, patch), row(kernel, number)];
    const linked = [];
    const tile = (label, values, far, how) => {
      const all = (i, j) => Array.from(values.subarray((i * P + j) * C, (i * P + j + 1) * C));
      const x = matrix(P, P);
      values.forEach((value, i) => (x.data[Math.floor(i / C)] += value));
      const paint = C === 3 && far && ((i, j) => all(i, j).map((v) => (v / far + 1) * 127.5));
      const formula = (i, j) => (how ? how((i * P + j) * C) : all(i, j).map(said).join(", "));
      return square(x, label, formula, 132, 28, { most: far * C, linked, paint });
    };
    const parts = (from) => Array.from({ length: C }, (_, c) => `${said(a[from + c])} · ${said(b[from + c])}`); // prettier-ignore
    return [
      tile(`patch ${patch}`, a, 1),
      tile(`template ${number}${C === 3 ? ", grey is 0" : ""}`, b, shading(b).far),
      tile("number times number", a.map((value, i) => value * b[i]), 0, (i) => `${parts(i).join(" + ")}, one part of the sum`), // prettier-ignore
    ];
  }

  function positions(run) {
    const { query, without } = state;
    const place = weights["tokens.pos_embed"];
    const of = Math.max(query, 1);
    const alike = matrix(grid.rows, grid.cols);
    for (let i = 0; i < patches; i++) alike.data[i] = cosine(row(place, of), row(place, i + 1));
    const likeness = (i, j) => `cosine with the place of patch ${i * grid.cols + j}: ${said(at(alike, i, j))}`; // prettier-ignore
    const formula = (i, j) => {
      const own = i ? at(run.embedded, i - 1, j) : weights["tokens.cls_token"].data[j];
      const sum = `${said(at(run.start, i, j))} = ${i ? `token of patch ${i - 1}` : "cls token"} ${said(own)}`; // prettier-ignore
      return sum + (without.positions ? "; its place is left out" : ` + position ${said(at(place, i, j))}`); // prettier-ignore
    };
    return [
      `The cls token goes in front, and ${without.positions ? "the embedding of each token's place is left out." : "each token gets the embedding of its place added."}`, // prettier-ignore
      square(alike, `how like the place of patch ${of - 1} the others are`, likeness, 200, 40, {
        ...{ most: 1, place: spot(of - 1), pick: (i, j) => pick(i * grid.cols + j + 1) },
      }),
      ofTokens(run.start, "tokens, cls first", formula),
    ];
  }

  function dot(a, b) {
    let sum = 0;
    for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
    return sum;
  }

  function cosine(a, b) {
    return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b) || 1);
  }

  function heads(run) {
    const { block, head } = state;
    const bias = weights[`blocks.${block}.attn.qkv.bias`];
    const names = { q: "query q: what it asks", k: "key k: what it is found by", v: "value v: what it hands out" }; // prettier-ignore
    const linked = [];
    const tables = Object.entries(names).map(([letter, label], which) => {
      const x = run.blocks[block].heads[head][letter];
      const formula = (i, j) => {
        const line = (which * h + head) * d + j;
        return product(at(x, i, j), `${normed("norm1")}${tokenName(i)} · row ${line} of the qkv weight`, bias?.data[line]); // prettier-ignore
      };
      return ofTokens(x, label, formula, { linked, side: fit(230, d, 14) });
    });
    const how = normed("norm1") ? "normed" : "as it is: norm1 is left out";
    return [`Head ${head} of block ${block} makes three rows of ${d} numbers from each token, ${how}.`, ...tables]; // prettier-ignore
  }

  /* A row for each token that asks; of many tokens only the one that is chosen, as a map. */
  function attention(run) {
    const { query, block, head, without } = state;
    const { products, scores, weights: shares, mixed, v, gone } = run.blocks[block].heads[head];
    const many = N > 40;
    const pair = (i, j) => (many ? [query, i * grid.cols + j + 1] : [i, j]);
    const linked = [];
    const named = N > 19 ? [] : NAMES; // beside cells that are large enough
    const some = many
      ? { linked, place: [0, 0], pick: (i, j) => pick(pair(i, j)[1]) }
      : { linked, lit: query, rows: named, columns: named, pick };
    const one = (x, label, formula, more) => {
      const part = many ? matrix(grid.rows, grid.cols, row(x, query).subarray(1)) : x;
      return square(part, label, (i, j) => formula(...pair(i, j)), 270, many ? 25 : 14, { ...some, ...more }); // prettier-ignore
    };
    const meets = (i, j) => `q of ${tokenName(i)} · k of ${tokenName(j)}`;
    const score = (i, j) => {
      if (at(scores, i, j) === -Infinity) return `−∞: ${tokenName(j)} is hidden from cls`;
      const sum = `${said(at(scores, i, j))} = ${meets(i, j)}`;
      if (without.scale) return `${sum}; √d is left out`;
      return `${sum} / √${d} = ${said(at(products, i, j))} / ${said(Math.sqrt(d))}`;
    };
    const mixture = (_, j) => {
      const part = (t) => `${said(at(shares, query, t))} · ${said(at(v, t, j))} of ${tokenName(t)}`;
      const two = largest(row(shares, query)).slice(0, 2).map(part).join(" + ");
      return gone ? "0: this head is left out" : `${said(at(mixed, query, j))} = ${two} + ${N - 2} more`; // prettier-ignore
    };
    return [
      `${many ? `The query of ${tokenName(query)}` : "Each token's query"} meets all keys: q · k. Softmax makes shares of the scores, 100% in all, and by these the values are mixed.`, // prettier-ignore
      taken(run, row(shares, query)),
      one(products, "q · k", (i, j) => `${said(at(products, i, j))} = ${meets(i, j)}`),
      one(scores, `scores = q · k${without.scale ? "" : " / √d"}`, score),
      one(shares, "weights = softmax", (i, j) => share(shares, scores, i, j), { signed: false }),
      ofTokens(matrix(1, d, row(mixed, query)), `mixture of the values, for ${tokenName(query)}`, mixture, { lit: -1, rows: [], pick: null, side: fit(270, d, 20), tall: 20 }), // prettier-ignore
    ];
  }

  /* A share, and how softmax made it: its powers may be very large or small. */
  function share(shares, scores, i, j) {
    const power = (v) => (v && (v < 0.01 || v >= 1e6) ? v.toExponential(1) : said(v));
    const sum = row(scores, i).reduce((total, score) => total + Math.exp(score), 0);
    const own = at(scores, i, j);
    return `${percent(at(shares, i, j))} = e^${said(own)} / the sum of all = ${power(Math.exp(own))} / ${power(sum)}`; // prettier-ignore
  }

  /* The places of numbers, that of the largest first. */
  function largest(values) {
    return Array.from(values.keys()).sort((a, b) => values[b] - values[a]);
  }

  /* A picture with lines from the asking token to those it takes most from. */
  function taken(run, shares) {
    const { query } = state;
    const scale = 240 / Math.max(H, W);
    const above = 30; // where cls has its place
    const [width, height] = [W * scale, H * scale];
    const middle = (t) => {
      const [x, y] = t ? spot(t - 1).map((i) => (i + 0.5) * P * scale).reverse() : [width / 2, 14 - above]; // prettier-ignore
      return [x, y + above];
    };
    const top = largest(shares).filter((t) => t !== query && shares[t]).slice(0, 8); // prettier-ignore
    const first = top.slice(0, 3).map((t) => `${tokenName(t)} (${percent(shares[t])})`);
    const words = `${tokenName(query)} takes ${first.length ? `most from ${first.join(", ")}` : "nothing"}; ${percent(shares[query])} from itself.`; // prettier-ignore
    const draw = (pen) => {
      enlarge(pen, pictureOf(run.pixels, config), 0, above, width, height);
      pen.strokeStyle = "#d55e00";
      [pen.shadowColor, pen.shadowBlur] = ["#fff", 3]; // seen on every ground
      for (const t of top) {
        pen.lineWidth = 1 + (9 * shares[t]) / shares[top[0]];
        pen.beginPath();
        pen.moveTo(...middle(query));
        pen.lineTo(...middle(t));
        pen.stroke();
      }
      pen.shadowBlur = 0;
      pen.fillStyle = "#e69f00";
      pen.fillRect(width / 2 - 14, 5, 28, 18);
      pen.fillStyle = "#000";
      pen.fillText("cls", width / 2 - 7, 18);
      const size = P * scale;
      if (query) frame(pen, middle(query)[0] - size / 2, middle(query)[1] - size / 2, size, size);
    };
    const label = "what it takes: a thick line is much";
    return { label, words, draw, width, height: height + above };
  }

  function mlp(run) {
    const { query, block, without } = state;
    const { made } = run.blocks[block];
    const bias = weights[`blocks.${block}.mlp.fc2.bias`].data;
    const long = (x, i) => Math.sqrt(dot(row(x, i), row(x, i)));
    const way = (one) => [one.start, ...one.blocks.flatMap((b) => [b.gone ? b.input : b.middle, b.output])]; // prettier-ignore
    const stream = way(run);
    const lengths = matrix(N, stream.length);
    lengths.data.forEach((_, k) => (lengths.data[k] = long(stream[k % stream.length], Math.floor(k / stream.length)))); // prettier-ignore
    // One scale with the whole model's lengths, so that what is lost is seen.
    const usual = way(state.run.whole).flatMap((x) => NAMES.map((_, i) => long(x, i)));
    const side = fit(620, stream.length, 44);
    const names = stream.map((_, s) => (s ? `${s % 2 ? "att" : "MLP"} ${(s - 1) >> 1}` : "start"));
    const formula = (i, s) => {
      const now = `${tokenName(i)}, ${names[s]}: length ${said(at(lengths, i, s))}`;
      const { gone, attended, made } = run.blocks[(s - 1) >> 1] || {};
      if (!s || gone) return now + (s ? "; the block is left out" : "");
      const added = `what was added has length ${said(long(s % 2 ? attended : made, i))}`;
      return `${now}; ${without.residuals ? "it took the stream's place" : added}`;
    };
    const outcome = without.residuals ? "it takes the stream's place" : "it is added to the stream";
    return [
      `Each token alone, ${normed("norm2") ? "normed" : "as it is: norm2 is left out"}, goes to ${run.blocks[block].bent.cols} numbers, is bent by GELU, and goes back to ${D}; ${outcome}.`, // prettier-ignore
      ofTokens(made, without.residuals ? "what it makes" : "what it adds to the stream", (i, j) => product(at(made, i, j), `${tokenName(i)} after GELU · row ${j} of fc2`, bias[j])), // prettier-ignore
      ofTokens(lengths, "each token's length on its way through the stream", formula, {
        ...{ signed: false, most: Math.max(...lengths.data, ...usual), side },
        ...{ columns: side < 36 ? [] : names, place: [query, 2 * block + 2] },
      }),
    ];
  }

  function head({ logits, probabilities }) {
    const bias = weights["head.bias"].data;
    const what = config.pool === "mean" ? "the mean of the patch tokens" : "cls";
    const last = state.without.norms.includes("norm") ? "Without" : "After";
    const place = [vitMeasures.best(logits.data), 0];
    const linked = [];
    const one = (x, label, formula, more) => {
      const said = (i) => `${classes[i]}: ${formula(i)}`;
      const wide = { side: 90, lit: -1, pick: null, rows: classes, linked, place };
      return ofTokens(matrix(classes.length, 1, x.data), label, said, { ...wide, ...more });
    };
    const logit = (i) => product(logits.data[i], `${what} · row ${i} of weights`, bias[i]);
    const chance = (i) => share(probabilities, logits, 0, i);
    return [
      `${last} the last norm, ${what} meets a row of weights for each class: the logits. Softmax makes shares of them.`,
      one(logits, "logits", logit),
      one(probabilities, "probabilities", chance, { signed: false, most: 1 }),
    ];
  }

  /* A drawing that is not asked; it is shown anew as a table is. */
  function chart({ width, height, ...first }) {
    const canvas = make("canvas", { width, height, role: "img" });
    const [title, words] = [make("figcaption"), make("p", { className: "formula" })];
    const update = (now) => {
      canvas.width = width; // empties it
      now.draw(canvas.getContext("2d"));
      title.textContent = now.label;
      words.textContent = now.words;
      canvas.setAttribute("aria-label", now.words);
    };
    update(first);
    return make("figure", { className: "table", update }, title, canvas, words);
  }

  // The strip: what each stage holds, small -------------------------------------------------------

  function cut(canvas, { pixels }) {
    const pen = canvas.getContext("2d");
    drawPixels(canvas, pixels, config);
    const size = (P * canvas.width) / W;
    for (let i = 0; i <= grid.cols; i++) pen.clearRect(i * size - 3, 0, 6, canvas.height);
    for (let i = 0; i <= grid.rows; i++) pen.clearRect(0, i * size - 3, canvas.width, 6);
  }

  /* The tokens' numbers as coloured cells; cls first, larger, each with its colour beside it. */
  function tokens(canvas, { start }) {
    const pen = canvas.getContext("2d");
    const shade = shading(start.data);
    const small = cells(N, D, (i, j) => shade.of(at(start, i, j)));
    for (const [colour, first, rows, top, tall] of [
      ["#e69f00", 0, 1, 0, 18],
      ["#0072b2", 1, patches, 24, 152],
    ]) {
      // prettier-ignore
      pen.fillStyle = colour;
      pen.fillRect(0, top, 12, tall);
      enlarge(pen, small, 0, first, D, rows, 16, top, 160, tall);
    }
  }

  function bars(canvas, { logits: { data } }) {
    const pen = canvas.getContext("2d");
    const far = shading(data).far;
    const tall = canvas.height / data.length;
    canvas.width = 176; // empties it
    data.forEach((value, i) => {
      pen.fillStyle = i === vitMeasures.best(data) ? "#e69f00" : "#888";
      pen.fillRect(88, i * tall, (88 * value) / far, Math.max(1, tall - 3));
    });
  }

  /* Of each block what the asking token takes from each patch, on one scale. */
  function blocks(canvases, run) {
    const all = canvases.map((_, b) => looks(run, "mean", state.query, b).subarray(1));
    const most = Math.max(...all.map((shares) => Math.max(...shares)));
    canvases.forEach((canvas, b) => {
      drawMap(canvas, run.pixels, config, all[b], most, state.query - 1);
      const { gone } = run.blocks[b];
      canvas.parentNode.classList.toggle("gone", Boolean(gone));
      canvas.parentNode.lastChild.textContent = gone ? "left out" : `${N}×${D}`;
    });
  }

  // What is chosen --------------------------------------------------------------------------------

  /* Tabs in a list; arrow keys go from one to the other. The function given back marks one open. */
  function tabs(list, contents, panel, choose) {
    const all = contents.map((children, i) => {
      const of = { type: "button", role: "tab", "aria-controls": panel.id };
      const tab = make("button", of, ...children);
      tab.addEventListener("click", () => choose(i));
      return tab;
    });
    list.addEventListener("keydown", (event) => {
      const by = step(event);
      if (!by) return;
      event.preventDefault();
      const now = all.indexOf(document.activeElement) + by[0] + by[1] + all.length;
      all[now % all.length].focus();
      choose(now % all.length);
    });
    list.setAttribute("role", "tablist");
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
    select.append(...names.map((name, i) => make("option", { value: i }, name)));
    select.addEventListener("change", () => change({ [key]: Number(select.value) }));
    listen(key, () => (select.value = state[key]));
    return make("label", {}, label, select);
  }

  const asker = () =>
    chooser(
      "who asks",
      Array.from(NAMES, (_, i) => tokenName(i)),
      "query",
    );

  /* A small canvas, with twice the pixels it is shown with, for sharp screens. */
  function thumb(width = W, height = H, long = 88) {
    const scale = long / Math.max(width, height);
    const canvas = make("canvas", { width: 2 * width * scale, height: 2 * height * scale });
    canvas.style.width = `${width * scale}px`;
    return canvas;
  }

  function build(strip, panel) {
    const maps = Array.from({ length: L }, () => thumb());
    const inner = Object.keys(IN_BLOCK);
    const stops = [
      ["photo", `${C}×${H}×${W}`, thumb(), (canvas, { pixels }) => drawPixels(canvas, pixels, config)], // prettier-ignore
      ["patches", `${patches}×${D}`, thumb(), cut],
      ["cls + positions", `${N}×${D}`, thumb(1, 1), tokens],
      ...maps.map((canvas, b) => [`block ${b}`, "", canvas]),
      ["head", `${classes.length}`, thumb(1, 1), bars],
    ];
    const numbers = make("div", { id: "numbers", role: "tabpanel" });
    const contents = stops.map(([name, shape, canvas]) => [canvas, make("b", {}, name), make("span", {}, shape)]); // prettier-ignore
    const mark = tabs(strip, contents, panel, (i) => {
      if (!maps[i - 3]) change({ stage: stops[i][0] });
      else change({ block: i - 3, stage: state.stage in IN_BLOCK ? state.stage : "attention" });
    });
    const list = make("div", { className: "row", "aria-label": "inside the block" });
    const names = inner.map((name) => [name]);
    const markInner = tabs(list, names, numbers, (i) => change({ stage: inner[i] }));
    const which = chooser("head", Array.from(Array(h).keys(), String), "head");
    const above = make("div", { className: "row" }, list, which, asker());
    const sentence = make("p");
    const place = make("div", { className: "side-by-side" });
    const hint =
      "Point at a number, or go to it by arrow keys: it says how it came about. All are rounded.";
    numbers.append(sentence, make("p", { className: "small" }, hint), place);
    strip.setAttribute("aria-label", "stages");
    panel.setAttribute("role", "tabpanel");
    panel.append(above, numbers);
    listen("stage block", ({ stage, block }) => {
      const open = stage in IN_BLOCK ? 3 + block : stops.findIndex(([name]) => name === stage);
      mark(open);
      markInner(inner.indexOf(stage));
      above.hidden = !(stage in IN_BLOCK);
      which.hidden = stage === "MLP";
      panel.setAttribute("aria-label", stops[open][0]);
      numbers.setAttribute("aria-label", stage);
    });
    listen("run", ({ run }) => stops.forEach(([, , canvas, draw]) => draw?.(canvas, run.shown)));
    listen("run query", ({ run }) => blocks(maps, run.shown));
    let opened = ""; // the stage whose tables stand there
    listen("run stage block head query", ({ run: { shown }, stage, block }) => {
      const [text, ...parts] = OPEN[stage](shown);
      const gone = stage in IN_BLOCK && shown.blocks[block].gone;
      sentence.textContent =
        (gone ? `Block ${block} is left out: what stands here is what it would do. ` : "") + text;
      if (opened === stage) return parts.forEach((part, i) => figures[i].update(part));
      opened = stage;
      figures = parts.map((part) => (part.matrix ? table : chart)(part));
      place.replaceChildren(...figures);
    });
  }

  return { build, asker, thumb };
})();
