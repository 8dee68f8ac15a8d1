"use strict";

/* What the page knows: the model, the picture, what is chosen and what is taken out. A change runs
the model again, at most once a frame, and then all that listen are told.
*/
const vitState = (() => {
  const { matrix, vit } = vitModel;
  const given = JSON.parse(document.getElementById("given").textContent);
  const { config, classes, labels, about, unseen } = given;
  const weights = {};
  for (const [name, { shape, kind, data }] of Object.entries(given.weights)) {
    // A convolution's weight (D, C, P, P) as D rows, a bias as one row, tokens (1, N, D) as N rows.
    const numbers =
      kind === "float16" ? halves(bytesOf(data)) : new Float32Array(bytesOf(data).buffer);
    const rows = shape.length === 1 ? 1 : shape.length === 3 ? shape[1] : shape[0];
    weights[name] = matrix(rows, numbers.length / rows, numbers);
  }
  const grid = { rows: config.height / config.patch_size, cols: config.width / config.patch_size };
  const patches = grid.rows * grid.cols;
  const examples = given.images.map((text) =>
    Float32Array.from(bytesOf(text), (b) => b / 127.5 - 1),
  );

  const state = {
    base: new Float32Array(config.in_channels * config.height * config.width).fill(-1),
    shift: [0, 0], // rows down, columns to the right
    example: -1, // which one the picture is; −1 when it is none of them
    caption: "a picture of your own", // what it is then
    covered: new Set(),
    without: nothingOut(),
    stage: "photo",
    block: config.depth - 1,
    head: 0,
    query: 0, // a token: 0 is cls, 1 the first patch
    twin: false,
  };
  const INPUTS = ["base", "shift", "covered", "without", "twin"];
  const listeners = [];
  let waiting = 0,
    stale = true;

  function bytesOf(text) {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  }

  /* Numbers of 16 bits: a sign, 5 bits of exponent, 10 of fraction (IEEE 754). */
  function halves(bytes) {
    const view = new DataView(bytes.buffer);
    return Float32Array.from({ length: bytes.length / 2 }, (_, i) => {
      const bits = view.getUint16(2 * i, true);
      const exponent = (bits >> 10) & 31,
        fraction = bits & 1023;
      const size = exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24;
      return bits >> 15 ? -size : size;
    });
  }

  function nothingOut() {
    return {
      positions: false,
      scale: false,
      residuals: false,
      norms: [],
      blocks: [],
      heads: [],
      hidden: [],
    };
  }

  function anyOut() {
    return Object.values(state.without).some((out) => out === true || out.length > 0);
  }

  /* The picture, moved and perhaps with patches covered: what moves out at an edge is not lost. */
  function pixels(covered = state.covered, base = state.base, shift = state.shift) {
    const { height, width, in_channels: C, patch_size: P } = config;
    const [down, right] = shift;
    const x = new Float32Array(base.length).fill(-1);
    for (let i = 0; i < x.length; i++) {
      const c = Math.floor(i / (height * width));
      const r = Math.floor(i / width) % height,
        col = i % width;
      const patch = Math.floor(r / P) * grid.cols + Math.floor(col / P);
      const fromRow = r - down,
        fromCol = col - right;
      const inside = fromRow >= 0 && fromRow < height && fromCol >= 0 && fromCol < width;
      if (inside && !covered.has(patch)) x[i] = base[(c * height + fromRow) * width + fromCol];
    }
    return x;
  }

  /* The whole model on the picture as it is, and, where something is out, without that. */
  function run() {
    const start = performance.now();
    stale = false;
    state.whole = vit(pixels(new Set()), weights, config);
    state.out = anyOut() || state.covered.size > 0;
    state.shown = state.out ? vit(pixels(), weights, config, state.without) : state.whole;
    state.twinRun = state.twin ? vit(pixels(), twinWeights(), config, state.without) : null;
    state.milliseconds = performance.now() - start;
  }

  /* Change what is chosen; the page follows in the next frame. The model runs again only where its
  input or its parts changed, not where one merely looks elsewhere. */
  function change(changes) {
    Object.assign(state, changes);
    stale ||= INPUTS.some((name) => name in changes);
    if (waiting) return;
    waiting = requestAnimationFrame(update);
  }

  function update() {
    cancelAnimationFrame(waiting);
    waiting = 0;
    if (stale) run();
    for (const listener of listeners) listener(state);
  }

  function listen(listener) {
    listeners.push(listener);
  }

  /* Another picture: what was covered or hidden was so for the one before. */
  function showPicture(base, changes = {}) {
    const without = { ...state.without, hidden: [] };
    change({ base, example: -1, shift: [0, 0], covered: new Set(), without, ...changes });
  }

  function showExample(number) {
    const count = examples.length;
    const example = ((number % count) + count) % count;
    showPicture(examples[example].slice(), { example });
  }

  /* What the model says of each example, whole or without a part; the page stays awake meanwhile. */
  async function readAll(without = {}, of = weights, pictures = examples) {
    const runs = [];
    let rested = performance.now();
    for (const picture of pictures) {
      runs.push(vit(picture, of, config, without));
      if (performance.now() - rested < 40) continue;
      await new Promise((resolve) => setTimeout(resolve));
      rested = performance.now();
    }
    return runs;
  }

  /* How many readings, one an example, are right. */
  function right(readings) {
    return readings.filter(({ probabilities }, i) => best(probabilities.data) === labels[i]).length;
  }

  async function countRight(without = {}, covered = new Set()) {
    const pictures = examples.map((picture) => pixels(covered, picture, [0, 0]));
    return right(await readAll(without, weights, pictures));
  }

  function best(values) {
    return values.indexOf(Math.max(...values));
  }

  // The untrained twin: same sizes, weights as they are before training, the same in every visit ---

  let twin = null;

  function twinWeights() {
    if (twin) return twin;
    const draw = generator(1);
    twin = {};
    for (const [name, { rows, cols, data }] of Object.entries(weights)) {
      const x = matrix(rows, cols);
      const reach = Math.sqrt(1 / (config.in_channels * config.patch_size ** 2));
      if (/norm\d?\.weight$/.test(name)) x.data.fill(1);
      else if (name.startsWith("patch_embed"))
        x.data.forEach((_, i) => (x.data[i] = reach * draw.even()));
      else if (!name.endsWith("bias")) x.data.forEach((_, i) => (x.data[i] = 0.02 * draw.normal()));
      twin[name] = x;
    }
    return twin;
  }

  /* Numbers drawn from a seed: `even` from −1 to 1, `normal` by Box and Muller's rule. */
  function generator(seed) {
    let last = seed;
    const share = () => {
      last = (Math.imul(last, 1664525) + 1013904223) >>> 0; // Numerical Recipes' generator
      return (last + 0.5) / 2 ** 32;
    };
    return {
      even: () => 2 * share() - 1,
      normal: () => Math.sqrt(-2 * Math.log(share())) * Math.cos(2 * Math.PI * share()),
    };
  }

  /* A token's name: cls, or a patch by its number, counted from 0 as in the lessons. */
  function tokenName(i) {
    return i === 0 ? "cls" : `patch ${i - 1}`;
  }

  return {
    config,
    weights,
    classes,
    unseen,
    labels,
    about,
    examples,
    grid,
    patches,
    state,
    change,
    update,
    listen,
    nothingOut,
    anyOut,
    pixels,
    showPicture,
    showExample,
    readAll,
    right,
    countRight,
    best,
    twinWeights,
    generator,
    tokenName,
  };
})();
