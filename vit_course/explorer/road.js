"use strict";

/* The road of the picture through the model: a strip of stages, each with what it holds now, and
the one that is open in numbers, each of which says how it came about.
*/
const vitRoad = (() => {
  const { matrix, row, templates, looks } = vitModel;
  const { make, said, percent, tabs, table, shading } = vitDrawing;
  const { cells, enlarge, drawPixels, drawMap } = vitDrawing;
  const { config, weights, classes, grid, patches, state, change, tokenName, listen } = vitState;
  const { depth: L, num_heads: h, embed_dim: D, in_channels: C, patch_size: P } = config;
  const { height: H, width: W } = config;
  const N = patches + 1;
  const d = D / h;
  const NAMES = Array.from({ length: N }, (_, i) => (i ? String(i - 1) : "cls"));
  const IN_BLOCK = { "QKV heads": heads, attention, MLP: mlp };
  const OPEN = { photo, patches: embedding, "cls + positions": positions, ...IN_BLOCK, head };
  const kernel = templates(weights["patch_embed.proj.weight"], config);
  let figures = []; // the tables of the open stage
  let pointed = null; // in the patches' tokens: a patch and a template

  const at = (x, i, j) => row(x, i)[j];
  const column = ({ data }) => matrix(data.length, 1, data);
  const pick = (token) => change({ query: token });

  // What each stage shows: a sentence, and the options of its tables ------------------------------

  /* A row for each token; a click lets that token ask. */
  function ofTokens(x, label, formula, more) {
    return { matrix: x, label, formula, lit: state.query, rows: NAMES, pick, ...more };
  }

  /* Cells as high as wide. */
  function square(x, label, formula, more) {
    const side = Math.max(2, Math.min(28, Math.floor(250 / Math.max(x.rows, x.cols))));
    return { matrix: x, label, formula, side, tall: side, ...more };
  }

  /* A number for each patch, where it stands on the picture; a click lets that patch ask. */
  function ofPatches(numbers, label, formula, more) {
    const token = (i, j) => i * grid.cols + j + 1;
    const click = { pick: (i, j) => pick(token(i, j)) };
    const x = matrix(grid.rows, grid.cols, numbers);
    return square(x, label, (i, j) => formula(token(i, j)), { ...click, ...more });
  }

  /* How a number came about, to which something is added, where there is such a thing. */
  function sum(value, what, added, name = "bias") {
    const how = `${said(value)} = ${what}`;
    if (added === undefined) return how;
    return `${how} + ${name} = ${said(value - added)} + ${said(added)}`;
  }

  /* How softmax made a share. */
  function share(shares, scores, i, j) {
    const powers = Array.from(row(scores, i), (score) => Math.exp(score));
    const all = powers.reduce((a, b) => a + b);
    const parts = `${powers[j].toPrecision(3)} / ${all.toPrecision(3)}`;
    return `${percent(at(shares, i, j))} = e^${said(at(scores, i, j))} / the sum of all = ${parts}`;
  }

  /* A token as a branch of the block gets it: its norm, where that is not left out. */
  function normed(part, i) {
    const out = state.without.norms.includes(`blocks.${state.block}.${part}`);
    return (out ? "" : "norm of ") + tokenName(i);
  }

  function photo({ pixels }) {
    const names = { 1: ["brightness"], 3: ["red", "green", "blue"] }[C];
    const channel = (_, c) => {
      const x = matrix(H, W, pixels.subarray(c * H * W, (c + 1) * H * W));
      const formula = (i, j) => `row ${i}, column ${j}: ${said(at(x, i, j))}`;
      const more = { most: 1, place: [H >> 1, W >> 1] };
      return square(x, names ? names[c] : `channel ${c}`, formula, more);
    };
    const channels = Array.from({ length: C }, channel);
    return ["A picture is numbers: −1 is the darkest, 1 the brightest.", ...channels];
  }

  function embedding(run) {
    pointed ||= [vitMeasures.best(looks(run, "rollout", 0).subarray(1)), 0];
    const bias = weights["patch_embed.proj.bias"].data;
    const formula = (i, j) => sum(at(run.embedded, i, j), `patch ${i} · template ${j}`, bias[j]);
    const tokens = ofTokens(run.embedded, "the patches' tokens", formula, {
      lit: state.query - 1,
      rows: NAMES.slice(1),
      pick: (i) => pick(i + 1),
      place: pointed,
      moved: (...place) => {
        pointed = place;
        tiles(run).forEach((tile, i) => figures[i].update(tile));
      },
    });
    const text = "Each patch meets each template, number times number, all added up, and a bias";
    return [`${text}: one number of its token.`, ...tiles(run), tokens];
  }

  /* The patch and the template that are pointed at; what has three colours, in them. */
  function tiles(run) {
    const [patch, number] = pointed;
    const tile = (label, values, far) => {
      const colours = matrix(P * P, C, values);
      const of = (i, j) => Array.from(row(colours, i * P + j));
      const x = matrix(P, P);
      values.forEach((value, i) => (x.data[Math.floor(i / C)] += value / C));
      const paint = C === 3 && ((i, j) => of(i, j).map((value) => (value / far + 1) * 127.5));
      return square(x, label, (i, j) => of(i, j).map(said).join(", "), { most: far, paint });
    };
    const template = row(kernel, number);
    const name = `template ${number}${C === 3 ? ", grey is 0" : ""}`;
    const two = [tile(`patch ${patch}`, row(run.patches, patch), 1)];
    return [...two, tile(name, template, shading(template).far)];
  }

  function positions(run) {
    const { query, without } = state;
    const places = weights["tokens.pos_embed"];
    const own = Math.max(query, 1); // cls stands nowhere on the picture: the first patch does
    const all = NAMES.map((_, i) => cosine(row(places, own), row(places, i)));
    const likeness = (i) => `cosine with the position of ${tokenName(i)}: ${said(all[i])}`;
    const place = [Math.floor((own - 1) / grid.cols), (own - 1) % grid.cols];
    const formula = (i, j) => {
      const token = i ? `token of ${tokenName(i)}` : "cls token";
      const added = without.positions ? undefined : at(places, i, j);
      return sum(at(run.start, i, j), token, added, "position");
    };
    const name = `how like the position of ${tokenName(own)} the others are`;
    return [
      `The cls token goes in front; positions are ${without.positions ? "left out" : "added"}.`,
      ofPatches(Float32Array.from(all.slice(1)), name, likeness, { most: 1, place }),
      ofTokens(run.start, "tokens, cls first", formula),
    ];
  }

  function cosine(a, b) {
    const dot = (x, y) => x.reduce((total, value, i) => total + value * y[i], 0);
    return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b) || 1);
  }

  function heads(run) {
    const { block, head } = state;
    const bias = weights[`blocks.${block}.attn.qkv.bias`];
    const roles = { q: "what it asks", k: "what it is found by", v: "what it hands out" };
    const tables = Object.entries(roles).map(([letter, role], which) => {
      const x = run.blocks[block].heads[head][letter];
      const formula = (i, j) => {
        const line = (which * h + head) * d + j;
        const what = `${normed("norm1", i)} · row ${line} of the qkv weight`;
        return sum(at(x, i, j), what, bias?.data[line]);
      };
      return ofTokens(x, `${letter}: ${role}`, formula, {
        side: Math.min(14, Math.floor(230 / d)),
      });
    });
    const text = `Head ${head} makes a query, a key and a value of each token, ${d} numbers each.`;
    return [text, ...tables];
  }

  /* A row for each token that asks; of many tokens only the one that is chosen, as a map. */
  function attention(run) {
    const { query, block, head, without } = state;
    const { products, scores, weights: shares } = run.blocks[block].heads[head];
    const many = N > 40;
    const one = (x, label, formula, more) => {
      const values = row(x, query).subarray(1);
      if (many) return ofPatches(values, label, (token) => formula(query, token), more);
      const side = Math.floor(250 / N);
      return ofTokens(x, label, formula, { columns: NAMES, side, ...more });
    };
    const product = (i, j) =>
      `${said(at(products, i, j))} = q of ${tokenName(i)} · k of ${tokenName(j)}`;
    const score = (i, j) => {
      if (at(scores, i, j) === -Infinity) return `−∞: ${tokenName(j)} is hidden from cls`;
      const by = without.scale ? ", √d is left out" : ` / √${d}`;
      return `${said(at(scores, i, j))} = ${said(at(products, i, j))}${by}`;
    };
    const weight = (i, j) => share(shares, scores, i, j);
    const who = many ? `The query of ${tokenName(query)}` : "Each token's query";
    return [
      `${who} meets all keys. Softmax makes shares of the scores, by which values are mixed.`,
      one(products, "q · k", product),
      one(scores, `scores = q · k${without.scale ? "" : " / √d"}`, score),
      one(shares, "weights = softmax", weight, { signed: false }),
    ];
  }

  function mlp(run) {
    const { made, bent } = run.blocks[state.block];
    const bias = weights[`blocks.${state.block}.mlp.fc2.bias`].data;
    const formula = (i, j) =>
      sum(at(made, i, j), `${normed("norm2", i)}, by fc1 and GELU, · row ${j} of fc2`, bias[j]);
    const then = state.without.residuals ? "what takes the stream's place" : "what it adds";
    const text = `Each token alone goes to ${bent.cols} numbers, is bent by GELU, and comes back`;
    return [`${text} to ${D}.`, ofTokens(made, then, formula)];
  }

  function head({ logits, probabilities }) {
    const bias = weights["head.bias"].data;
    const pooled = config.pool === "mean" ? "the mean of the patch tokens" : "cls";
    const when = state.without.norms.includes("norm") ? "Without" : "After";
    const look = { rows: classes, side: 90, place: [vitMeasures.best(logits.data), 0] };
    const one = (x, label, how, more) => {
      const formula = (i) => `${classes[i]}: ${how(i)}`;
      return { matrix: column(x), label, formula, ...look, ...more };
    };
    const logit = (i) => sum(logits.data[i], `${pooled} · row ${i} of weights`, bias[i]);
    const chance = (i) => share(probabilities, logits, 0, i);
    return [
      `${when} the last norm, ${pooled} meets a row of weights for each class.`,
      one(logits, "logits", logit),
      one(probabilities, "probabilities = softmax", chance, { signed: false, most: 1 }),
    ];
  }

  // The strip: what each stage holds, small -------------------------------------------------------

  function cut(canvas, { pixels }) {
    const pen = drawPixels(canvas, pixels, config);
    const size = (P * canvas.width) / W;
    for (let i = 0; i <= grid.cols; i++) pen.clearRect(i * size - 3, 0, 6, canvas.height);
    for (let i = 0; i <= grid.rows; i++) pen.clearRect(0, i * size - 3, canvas.width, 6);
  }

  /* A matrix as coloured cells. */
  function numbers(canvas, { rows, cols, data }) {
    const shade = shading(data);
    enlarge(
      cells(rows, cols, (i, j) => shade.of(data[i * cols + j])),
      canvas,
    );
  }

  /* Of each block what the asking token takes from each patch, on one scale. */
  function blocks(canvases, run) {
    const all = canvases.map((_, b) => looks(run, "mean", state.query, b).subarray(1));
    const most = Math.max(...all.map((shares) => Math.max(...shares)));
    canvases.forEach((canvas, b) => {
      const { gone } = run.blocks[b];
      drawMap(canvas, run.pixels, config, all[b], most, state.query - 1);
      canvas.parentNode.classList.toggle("gone", Boolean(gone));
      canvas.parentNode.lastChild.textContent = gone ? "left out" : `${N}×${D}`;
    });
  }

  // What is chosen --------------------------------------------------------------------------------

  /* A choice by name of what stands in the state as a number. */
  function chooser(label, names, key) {
    const onchange = () => change({ [key]: Number(select.value) });
    const options = names.map((name, i) => make("option", { value: i }, name));
    const select = make("select", { onchange }, ...options);
    listen(key, () => (select.value = state[key]));
    return make("label", {}, label, select);
  }

  /* A small canvas of the picture's shape, with twice the pixels it is shown with. */
  function thumb(long) {
    const [width, height] = [W, H].map((side) => (long * side) / Math.max(W, H));
    const canvas = make("canvas", { width: 2 * width, height: 2 * height });
    canvas.style.width = `${width}px`;
    return canvas;
  }

  function build(strip, panel) {
    const stops = [
      ["photo", `${C}×${H}×${W}`, (canvas, { pixels }) => drawPixels(canvas, pixels, config)],
      ["patches", `${patches}×${D}`, cut],
      ["cls + positions", `${N}×${D}`, (canvas, { start }) => numbers(canvas, start)],
      ...Array.from({ length: L }, (_, b) => [`block ${b}`, ""]),
      ["head", `${classes.length}`, (canvas, { logits }) => numbers(canvas, column(logits))],
    ];
    const thumbs = stops.map(() => thumb(88));
    const contents = stops.map(([name, shape], i) => [thumbs[i], make("b", {}, name), shape]);
    const markStop = tabs(strip, contents, panel, (i) => {
      if (i < 3 || i >= 3 + L) change({ stage: stops[i][0] });
      else change({ block: i - 3, stage: state.stage in IN_BLOCK ? state.stage : "QKV heads" });
    });
    const inside = make("div", { id: "numbers", role: "tabpanel" });
    const inner = Object.keys(IN_BLOCK);
    const list = make("div", { className: "row", "aria-label": "inside the block" });
    const markInner = tabs(list, inner, inside, (i) => change({ stage: inner[i] }));
    const which = chooser("head", [...Array(h).keys()], "head");
    const above = make("div", { className: "row" }, list, which);
    const sentence = make("p");
    const hint = "Point at a number, or go there by arrow keys: it says how it came about.";
    const place = make("div", { className: "side-by-side" });
    inside.append(sentence, make("p", { className: "small" }, hint), place);
    strip.setAttribute("aria-label", "stages");
    panel.setAttribute("role", "tabpanel");
    panel.append(above, inside);

    listen("stage block", ({ stage, block }) => {
      const open = stage in IN_BLOCK ? 3 + block : stops.findIndex(([name]) => name === stage);
      markStop(open);
      markInner(inner.indexOf(stage));
      above.hidden = !(stage in IN_BLOCK);
      which.hidden = stage === "MLP";
      panel.setAttribute("aria-label", stops[open][0]);
      inside.setAttribute("aria-label", stage);
    });
    listen("run", ({ run }) => stops.forEach(([, , draw], i) => draw?.(thumbs[i], run.shown)));
    listen("run query", ({ run }) => blocks(thumbs.slice(3, 3 + L), run.shown));
    listen("query", ({ query }) => (pointed = query ? [query - 1, pointed?.[1] ?? 0] : pointed));
    let opened = ""; // the stage whose tables stand there
    listen("run stage block head query", ({ run: { shown }, stage, block, head }) => {
      const [text, ...parts] = OPEN[stage](shown);
      const { gone, heads } = shown.blocks[block];
      const out = stage in IN_BLOCK && (gone || (stage !== "MLP" && heads[head].gone));
      sentence.textContent = (out ? "Left out; this is what it would do. " : "") + text;
      if (opened === stage) return parts.forEach((part, i) => figures[i].update(part));
      opened = stage;
      const together = {}; // tables of one shape are asked together
      figures = parts.map((part) => {
        const linked = (together[[part.matrix.rows, part.matrix.cols]] ||= []);
        return table({ ...part, linked });
      });
      place.replaceChildren(...figures);
    });
  }

  return { build, chooser, thumb };
})();
