"use strict";

/* The road of the picture through the model, as the course's map has it: each stage opens into its
numbers, and each number says how it came about.
*/
const vitRoad = (() => {
  const { matrix, row, templates } = vitModel;
  const { make, said, percent, table } = vitDrawing;
  const { config, weights, classes, grid, patches, state, change, tokenName } = vitState;
  const { depth: L, num_heads: h, embed_dim: D, in_channels: C, patch_size: P } = config;
  const N = patches + 1,
    d = D / h,
    width = weights["blocks.0.mlp.fc1.weight"].rows;
  const kernel = templates(weights["patch_embed.proj.weight"], config);
  const NAMES = Array.from({ length: N }, (_, i) => (i ? String(i - 1) : "cls"));
  const ofTokens = { rowName: tokenName, rows: NAMES };
  let number = 0; // of a token's D: the one whose template is shown

  // A stage has its name, the shape that leaves it, its icon, its tables.
  const STAGES = [
    { name: "photo", shape: `${C}×${config.height}×${config.width}`, icon: photoIcon, open: photo },
    { name: "patches", shape: `${patches}×${D}`, icon: patchesIcon, open: embedding },
    { name: "cls + positions", shape: `${N}×${D}`, icon: tokensIcon, open: positions },
    { name: "QKV heads", shape: `3×${h}×${N}×${d}`, icon: headsIcon, open: heads, inBlock: true },
    {
      name: "attention",
      shape: `${h}×${N}×${N}`,
      icon: attentionIcon,
      open: attention,
      inBlock: true,
    },
    { name: "MLP", shape: `${N}×${D}`, icon: mlpIcon, open: mlp, inBlock: true },
    { name: "head", shape: `${classes.length}`, icon: headIcon, open: head },
  ];

  // What each stage shows -------------------------------------------------------------------------

  function photo({ shown }) {
    const { height: H, width: W } = config;
    return [
      "A picture is numbers: here −1 is black and 1 is white.",
      ...Array.from({ length: C }, (_, c) =>
        table({
          matrix: matrix(H, W, shown.pixels.subarray(c * H * W, (c + 1) * H * W)),
          label: C === 3 ? ["red", "green", "blue"][c] : C === 1 ? "pixels" : `channel ${c}`,
          most: 1,
          side: Math.max(2, Math.floor(320 / W)),
          tall: Math.max(2, Math.floor(320 / W)),
          formula: (i, j) => {
            const value = shown.pixels[(c * H + i) * W + j];
            const byte = (value + 1) * 127.5;
            return `row ${i}, column ${j}: ${said(value)} = ${byte.toFixed(0)} / 127.5 − 1, from its byte`;
          },
        }),
      ),
    ];
  }

  function embedding({ shown, query }) {
    const patch = Math.max(query - 1, 0),
      bias = weights["patch_embed.proj.bias"].data;
    number = Math.min(number, D - 1);
    const square = (values) => matrix(P, P * C, values);
    const side = Math.max(2, Math.min(28, Math.floor(160 / P)));
    return [
      `A patch of ${P}×${P} pixels${C > 1 ? ` in ${C} colours` : ""}, ${P * P * C} numbers, meets ` +
        `${D} templates: number times number, all added up. Each sum is one number of its token.`,
      table({
        matrix: shown.embedded,
        label: "the patches' tokens",
        lit: patch,
        place: [patch, number],
        rowName: (i) => `patch ${i}`,
        rows: NAMES.slice(1),
        pick: (i, j) => {
          number = j;
          change({ query: i + 1 });
        },
        formula: (i, j) => {
          const value = row(shown.embedded, i)[j];
          return (
            `${said(value)} = patch ${i} · template ${j} + bias = ` +
            `${said(value - bias[j])} + ${said(bias[j])}; a click shows both`
          );
        },
      }),
      make(
        "div",
        { className: "side-by-side" },
        table({
          matrix: square(row(shown.patches, patch)),
          label: `patch ${patch}`,
          most: 1,
          side,
          tall: side,
          formula: (i, j) =>
            `its number ${i * P * C + j}: ${said(row(shown.patches, patch)[i * P * C + j])}`,
        }),
        table({
          matrix: square(row(kernel, number)),
          label: `template ${number}`,
          side,
          tall: side,
          formula: (i, j) => {
            const [a, b] = [row(shown.patches, patch), row(kernel, number)].map(
              (x) => x[i * P * C + j],
            );
            return `patch ${said(a)} times template ${said(b)} = ${said(a * b)}, one part of the sum`;
          },
        }),
      ),
    ];
  }

  function positions({ shown, query, without }) {
    const place = weights["tokens.pos_embed"],
      cls = weights["tokens.cls_token"].data;
    const alike = matrix(grid.rows, grid.cols);
    const of = Math.max(query, 1);
    alike.data.forEach((_, i) => (alike.data[i] = cosine(row(place, of), row(place, i + 1))));
    return [
      "The cls token goes in front, and " +
        (without.positions
          ? "the embedding of each token's place is left out."
          : "each token gets the embedding of its place added."),
      table({
        matrix: shown.start,
        label: "tokens, cls first",
        lit: query,
        ...ofTokens,
        pick: (i) => change({ query: i }),
        formula: (i, j) => {
          const own = i ? row(shown.embedded, i - 1)[j] : cls[j];
          const word = i ? `token of patch ${i - 1}` : "cls token";
          const sum = `${said(row(shown.start, i)[j])} = ${word} ${said(own)}`;
          return without.positions
            ? `${sum}; its place is left out`
            : `${sum} + position ${said(row(place, i)[j])}`;
        },
      }),
      table({
        matrix: alike,
        label: `how like the place of patch ${of - 1} the others are`,
        most: 1,
        side: Math.floor(160 / grid.cols),
        tall: Math.floor(160 / grid.cols),
        formula: (i, j) =>
          `cosine with the place of patch ${i * grid.cols + j}: ${said(row(alike, i)[j])}`,
        pick: (i, j) => change({ query: i * grid.cols + j + 1 }),
      }),
    ];
  }

  function cosine(a, b) {
    const sum = (f) => a.reduce((total, value, i) => total + f(value, b[i]), 0);
    return sum((x, y) => x * y) / Math.sqrt(sum((x) => x * x) * sum((_, y) => y * y) || 1);
  }

  function heads({ shown, query, block, head }) {
    const parts = shown.blocks[block].heads[head],
      bias = weights[`blocks.${block}.attn.qkv.bias`];
    const words = { q: "what it asks", k: "what it is found by", v: "what it hands out" };
    return [
      leftOut(shown, block) +
        `Head ${head} of block ${block} makes three rows of ${d} numbers from each token` +
        (normed(block, "norm1") ? ", normed." : ", as it is: norm1 is left out."),
      make(
        "div",
        { className: "side-by-side" },
        ...Object.entries(words).map(([letter, meaning], which) =>
          table({
            matrix: parts[letter],
            side: Math.max(3, Math.min(14, Math.floor(240 / d))),
            label: `${{ q: "query", k: "key", v: "value" }[letter]} ${letter}: ${meaning}`,
            lit: query,
            ...ofTokens,
            pick: (i) => change({ query: i }),
            formula: (i, j) => {
              const line = (which * h + head) * d + j,
                shift = bias ? bias.data[line] : 0;
              const value = row(parts[letter], i)[j];
              return (
                `${said(value)} = ${normed(block, "norm1")}${tokenName(i)} · row ${line} of the qkv weight` +
                (bias ? ` + bias = ${said(value - shift)} + ${said(shift)}` : "")
              );
            },
          }),
        ),
      ),
    ];
  }

  function attention({ shown, query, block, head, without }) {
    const parts = shown.blocks[block].heads[head];
    const at = (x, i, j) => row(x, i)[j];
    const side = Math.max(3, Math.min(14, Math.floor(270 / N)));
    const shared = {
      ...ofTokens,
      lit: query,
      colName: tokenName,
      columns: side < 14 ? [] : NAMES,
      side,
      tall: side,
      linked: [],
      pick: (i) => change({ query: i }),
    };
    const divisor = without.scale ? 1 : Math.sqrt(d);
    const product = (i, j) => `q of ${tokenName(i)} · k of ${tokenName(j)}`;
    const add = weights[`blocks.${block}.attn.proj.bias`].data;
    return [
      `${leftOut(shown, block)}A row for each token that asks, a column for each that is asked.`,
      make(
        "div",
        { className: "side-by-side" },
        table({
          ...shared,
          matrix: parts.products,
          label: "q · k",
          formula: (i, j) => `${said(at(parts.products, i, j))} = ${product(i, j)}`,
        }),
        table({
          ...shared,
          matrix: parts.scores,
          label: without.scale ? "scores = q · k" : "scores = q · k / √d",
          formula: (i, j) =>
            at(parts.scores, i, j) === -Infinity
              ? `−∞: ${tokenName(j)} is hidden from cls`
              : without.scale
                ? `${said(at(parts.scores, i, j))} = ${product(i, j)}, and √d is left out`
                : `${said(at(parts.scores, i, j))} = ${product(i, j)} / √${d} = ` +
                  `${said(at(parts.products, i, j))} / ${said(divisor)}`,
        }),
        table({
          ...shared,
          matrix: parts.weights,
          label: "weights = softmax",
          signed: false,
          formula: (i, j) => {
            const power = Math.exp(at(parts.scores, i, j));
            const sum = row(parts.scores, i).reduce((total, score) => total + Math.exp(score), 0);
            return (
              `${percent(at(parts.weights, i, j))} = e^${said(at(parts.scores, i, j))} / the row's sum = ` +
              `${said(power)} / ${said(sum)}`
            );
          },
        }),
      ),
      table({
        matrix: parts.mixed,
        label: "mixture: the values by these weights",
        lit: query,
        ...ofTokens,
        pick: (i) => change({ query: i }),
        formula: (i, j) => {
          if (without.heads.some(([b, gone]) => b === block && gone === head)) {
            return "0: this head is left out";
          }
          const shares = Array.from(row(parts.weights, i), (weight, t) => [weight, t]);
          const [a, b] = shares.sort((x, y) => y[0] - x[0]);
          const part = ([weight, t]) =>
            `${said(weight)} · ${said(at(parts.v, t, j))} of ${tokenName(t)}`;
          return `${said(at(parts.mixed, i, j))} = ${part(a)} + ${part(b)} + ${N - 2} more`;
        },
      }),
      table({
        matrix: shown.blocks[block].attended,
        label: `what all ${h} heads together ${without.residuals ? "make" : "add to the stream"}`,
        lit: query,
        ...ofTokens,
        pick: (i) => change({ query: i }),
        formula: (i, j) => {
          const value = at(shown.blocks[block].attended, i, j);
          return (
            `${said(value)} = the ${h} mixtures of ${tokenName(i)} side by side · row ${j} of proj + ` +
            `bias = ${said(value - add[j])} + ${said(add[j])}`
          );
        },
      }),
    ];
  }

  /* A word before all else, where a block is left out and its numbers reach nothing. */
  function leftOut(shown, block) {
    return shown.blocks[block].gone
      ? `Block ${block} is left out: what stands here is what it would do. `
      : "";
  }

  /* "norm of ", where that norm is not left out. */
  function normed(block, part) {
    return state.without.norms.includes(`blocks.${block}.${part}`) ? "" : "norm of ";
  }

  function mlp({ shown, whole, query, block, without }) {
    const steps = shown.blocks[block];
    const stream = [["start", shown.start, null]];
    shown.blocks.forEach(({ input, middle, attended, output, made }, b) => {
      const out = without.blocks.includes(b);
      stream.push(
        [`block ${b}'s attention`, out ? input : middle, out ? null : attended],
        [`block ${b}'s MLP`, output, out ? null : made],
      );
    });
    const side = Math.min(44, Math.floor(620 / stream.length));
    const lengths = matrix(N, stream.length);
    stream.forEach(([, x], s) => {
      for (let i = 0; i < N; i++) lengths.data[i * stream.length + s] = length(row(x, i));
    });
    // One scale with the whole model's lengths, so that what is lost is seen.
    const usual = whole.blocks.flatMap(({ input, middle, output }) => [input, middle, output]);
    const most = Math.max(
      ...lengths.data,
      ...usual.flatMap((x) => NAMES.map((_, i) => length(row(x, i)))),
    );
    const bias = weights[`blocks.${block}.mlp.fc2.bias`].data;
    return [
      leftOut(shown, block) +
        `Each token alone: to ${width} numbers, bent by GELU, and back to ${D}; ` +
        (without.residuals ? "that takes the stream's place." : "that is added to the stream."),
      table({
        matrix: steps.bent,
        label: "after GELU",
        lit: query,
        ...ofTokens,
        pick: (i) => change({ query: i }),
        formula: (i, j) =>
          `${said(row(steps.bent, i)[j])} = GELU(${said(row(steps.hidden, i)[j])}), which is ` +
          `${normed(block, "norm2")}${tokenName(i)} · row ${j} of fc1 + bias`,
      }),
      table({
        matrix: steps.made,
        label: without.residuals ? "what it makes" : "what it adds to the stream",
        lit: query,
        ...ofTokens,
        pick: (i) => change({ query: i }),
        formula: (i, j) => {
          const value = row(steps.made, i)[j];
          return (
            `${said(value)} = ${tokenName(i)} after GELU · row ${j} of fc2 + bias = ` +
            `${said(value - bias[j])} + ${said(bias[j])}`
          );
        },
      }),
      table({
        matrix: lengths,
        label: "each token's length on its way through the stream",
        signed: false,
        most,
        lit: query,
        ...ofTokens,
        side,
        columns:
          side < 36
            ? []
            : stream.map((_, s) => (s ? `${s % 2 ? "att" : "MLP"} ${(s - 1) >> 1}` : "start")),
        place: [query, 2 * block + 2],
        pick: (i) => change({ query: i }),
        formula: (i, s) => {
          const [name, , added] = stream[s];
          const now = said(row(lengths, i)[s]);
          if (s === 0) return `${tokenName(i)} starts with length ${now}`;
          const did = added && said(length(row(added, i)));
          const what = without.residuals
            ? "it took the stream's place"
            : `it added a vector of length ${did}`;
          return (
            `${tokenName(i)} after ${name}: length ${now}; ` +
            (added ? what : "the block is left out")
          );
        },
      }),
    ];
  }

  function length(values) {
    return Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));
  }

  function head({ shown, without }) {
    const bias = weights["head.bias"].data,
      K = classes.length;
    const what = config.pool === "mean" ? "the mean of the patch tokens" : "cls";
    const normless = without.norms.includes("norm");
    const side = Math.max(3, Math.min(40, Math.floor(600 / K)));
    const sum = shown.logits.data.reduce((total, logit) => total + Math.exp(logit), 0);
    return [
      (normless ? `Without the last norm, ${what}` : `After the last norm, ${what}`) +
        " is multiplied with a row of weights for each class.",
      table({
        matrix: shown.pooled,
        label: normless ? what : `${what}, normed`,
        rowName: () => what,
        tall: 20,
      }),
      table({
        matrix: shown.logits,
        label: "logits",
        side,
        tall: 28,
        place: [0, vitState.best(shown.logits.data)],
        formula: (_, j) =>
          `class ${classes[j]}: ${said(shown.logits.data[j])} = ${what} · row ${j} + bias = ` +
          `${said(shown.logits.data[j] - bias[j])} + ${said(bias[j])}`,
      }),
      table({
        matrix: shown.probabilities,
        label: "probabilities",
        side,
        tall: 28,
        signed: false,
        most: 1,
        place: [0, vitState.best(shown.logits.data)],
        formula: (_, j) =>
          `class ${classes[j]}: ${percent(shown.probabilities.data[j])} = e^${said(shown.logits.data[j])} / ` +
          `the sum = ${said(Math.exp(shown.logits.data[j]))} / ${said(sum)}`,
      }),
    ];
  }

  // The icons, in the course's colours ------------------------------------------------------------

  function icon(boxes) {
    const space = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(space, "svg");
    svg.setAttribute("viewBox", "0 0 60 44");
    svg.setAttribute("aria-hidden", "true");
    for (const [x, y, width, height, fill] of boxes) {
      const box = document.createElementNS(space, "rect");
      Object.entries({ x, y, width, height, fill }).forEach(([k, v]) => box.setAttribute(k, v));
      svg.append(box);
    }
    return svg;
  }

  const LANDSCAPE = ["ssssss", "sssyys", "sshsys", "shhhss", "hhhhhg", "gggggg"];
  const COLOURS = { s: "#9cc9e8", y: "#f0c419", h: "#5b7f95", g: "#6a9a4a" };

  function landscape(gap) {
    return LANDSCAPE.flatMap((line, i) =>
      [...line].map((letter, j) => [
        12 + j * 6 + (Math.floor(j / 2) - 1) * gap,
        4 + i * 6 + (Math.floor(i / 2) - 1) * gap,
        5.6,
        5.6,
        COLOURS[letter],
      ]),
    );
  }

  function photoIcon() {
    return icon(landscape(0));
  }

  function patchesIcon() {
    return icon(landscape(3));
  }

  function tokensIcon() {
    return icon(
      [0, 1, 2, 3, 4].flatMap((i) => [
        [12, 3 + i * 8, 24, 6, i ? "#0072b2" : "#e69f00"],
        [40, 3 + i * 8, 7, 6, "#cc79a7"],
      ]),
    );
  }

  function headsIcon() {
    return icon(
      ["#d55e00", "#56b4e9", "#009e73"].flatMap((fill, j) =>
        [0, 1, 2].map((i) => [10 + j * 14, 2 + i * 14, 12, 12, fill]),
      ),
    );
  }

  function attentionIcon() {
    const boxes = [];
    for (let i = 0; i < 5; i++) {
      for (let j = 0; j < 5; j++) {
        const weight = Math.max(0.05, 1 - 0.42 * Math.abs(i - j) - 0.1 * ((3 * i + j) % 3));
        const fill = `rgb(${vitDrawing.colour(vitDrawing.SHARES, weight)})`;
        boxes.push([11 + j * 8, 2 + i * 8, 7.5, 7.5, fill]);
      }
    }
    return icon(boxes);
  }

  function mlpIcon() {
    return icon([
      [14, 14, 8, 16, "#777777"],
      [26, 3, 8, 38, "#777777"],
      [38, 14, 8, 16, "#777777"],
    ]);
  }

  function headIcon() {
    return icon([12, 18, 40, 14, 22].map((width, i) => [10, 3 + i * 8, width, 6, "#e69f00"]));
  }

  // The road itself -------------------------------------------------------------------------------

  /* A choice of a block or head, by its number. */
  function chooser(name, count, key) {
    const select = make("select", { id: `choose-${key}` });
    for (let i = 0; i < count; i++) select.append(make("option", { value: i, textContent: i }));
    select.addEventListener("change", () => change({ [key]: Number(select.value) }));
    vitState.listen(() => (select.value = state[key]));
    return make("label", {}, `${name} `, select);
  }

  function build(road, detail) {
    const buttons = STAGES.map(({ name, shape, icon: draw, inBlock }) => {
      const button = make(
        "button",
        { type: "button", className: inBlock ? "stage in-block" : "stage" },
        draw(),
        make("span", {}, name),
        make("span", { className: "small" }, shape),
      );
      button.addEventListener("click", () => change({ stage: name }));
      return button;
    });
    const frame = make(
      "div",
      { className: "block-frame" },
      make("span", { className: "small" }, `encoder block, ${L} times`),
      make("div", { className: "row" }, ...buttons.slice(3, 6)),
    );
    road.append(...buttons.slice(0, 3), frame, buttons[6]);
    const choosers = make(
      "div",
      { className: "row" },
      chooser("block", L, "block"),
      chooser("head", h, "head"),
    );
    const heading = make("h3", { tabIndex: -1 });
    const place = make("div");
    const sideways = () => [...place.querySelectorAll(".sideways")];
    let opened = null; // the stage that was shown last
    detail.append(make("div", { className: "row spread" }, heading, choosers), place);

    vitState.listen(() => {
      const stage = STAGES.find(({ name }) => name === state.stage);
      buttons.forEach((button, i) =>
        button.setAttribute("aria-pressed", STAGES[i] === stage ? "true" : "false"),
      );
      choosers.hidden = !stage.inBlock;
      choosers.lastChild.hidden = stage.name === "MLP";
      heading.textContent = stage.name;
      const [text, ...tables] = stage.open(state);
      const held = focusedTable(place);
      const stay = stage.name === opened; // then its wide tables stay where they were scrolled to
      const scrolled = sideways().map((box) => box.scrollLeft);
      opened = stage.name;
      place.replaceChildren(make("p", {}, text), ...tables);
      if (stay) sideways().forEach((box, i) => (box.scrollLeft = scrolled[i] || 0));
      if (held >= 0) place.querySelectorAll("canvas[tabindex]")[held]?.focus();
    });
  }

  /* Which table has the focus: it keeps it when the tables are drawn anew. */
  function focusedTable(place) {
    return [...place.querySelectorAll("canvas[tabindex]")].indexOf(document.activeElement);
  }

  return { build, STAGES, cosine, length };
})();
