"use strict";

/* What the page knows, all of it in one object, `state`: the picture, what is chosen, what is taken
out, and what the model said. Whoever changes something calls `change`; in the next frame the model
runs again in a Worker, where its input changed, and those who listen to what changed draw it.
*/
const vitState = (() => {
  const { matrix, cover, filled } = vitModel;
  const given = JSON.parse(document.getElementById("given").textContent);
  const { config, classes, labels, ink } = given;
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
  const paper = ink ? -1 : undefined; // what covers a patch; of photos their own mean colour

  const state = {
    // the picture
    base: new Float32Array(config.in_channels * config.height * config.width).fill(-1),
    example: -1, // which one the picture is; −1 when it is none of them
    caption: "", // what it is then
    covered: new Set(),
    // the model
    without: nothingOut(),
    twin: false, // whether the untrained twin stands beside it
    // what is chosen
    tool: ink ? "draw" : "cover",
    light: "looks", // what lights the large picture up: "looks", "matters" or "nothing"
    patch: -1, // pointed at in the picture
    cursor: [config.height >> 1, config.width >> 1], // row and column, for keys
    name: -1, // pointed at among the classes
    kind: "rollout", // of attention: "head", "mean" or "rollout"
    query: 0, // a token: 0 is cls, 1 the first patch
    block: config.depth - 1,
    head: 0,
    stage: "attention",
    // what was found, of the pixels and parts as they were then
    run: null, // see vitMeasures.run
    matters: null, // see vitMeasures.matters
  };
  const INPUTS = ["base", "covered", "without", "twin"];
  const listeners = [];
  let changed = new Set(Object.keys(state));
  let waiting = 0;

  function bytesOf(text) {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  }

  /* Numbers of 16 bits: a sign, 5 bits of exponent, 10 of fraction (IEEE 754). */
  function halves(bytes) {
    const view = new DataView(bytes.buffer);
    return Float32Array.from({ length: bytes.length / 2 }, (_, i) => {
      const bits = view.getUint16(2 * i, true);
      const exponent = (bits >> 10) & 31;
      const fraction = bits & 1023;
      const size = exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24;
      return bits >> 15 ? -size : size;
    });
  }

  function nothingOut() {
    const none = { positions: false, scale: false, residuals: false };
    return { ...none, norms: [], blocks: [], heads: [], hidden: [] };
  }

  // Changes ---------------------------------------------------------------------------------------

  function change(changes) {
    for (const [name, value] of Object.entries(changes)) {
      if (!(name in state)) throw new Error(`the state has no ${name}`);
      if (state[name] !== value) changed.add(name);
      state[name] = value;
    }
    waiting ||= requestAnimationFrame(update);
  }

  function update() {
    cancelAnimationFrame(waiting);
    waiting = 0;
    const now = changed;
    changed = new Set();
    if (INPUTS.some((name) => now.has(name))) ask();
    for (const [names, listener] of listeners) {
      const ready = state.run || !names.includes("run"); // the first answer is on its way
      if (ready && names.some((name) => now.has(name))) listener(state);
    }
  }

  /* `listener(state)` is called when one of the things of these names changed. */
  function listen(names, listener) {
    listeners.push([names.split(" "), listener]);
  }

  /* Another picture: what was covered or hidden was so for the one before. */
  function show(base, changes = {}) {
    const without = { ...state.without, hidden: [] };
    change({ base, example: -1, covered: new Set(), without, ...changes });
  }

  function showExample(number) {
    const example = (number + examples.length) % examples.length;
    show(examples[example], { example });
  }

  /* The picture as the model sees it. */
  const pixels = () => cover(state.base, state.covered, config, paper);

  /* Whether there is too little on the picture to say anything. */
  const isEmpty = () => filled(pixels(), ink) < 0.02;

  // The Worker ------------------------------------------------------------------------------------

  const asked = new Map(); // what it was asked and has not answered
  let last = 0; // its number
  let send = null;

  /* Ask for one of vitMeasures. `progress(share)` hears how far it is; `stop()` of the promise ends
  it, and it is rejected at once. */
  function work(name, args = {}, progress = () => {}) {
    const id = ++last;
    const promise = new Promise((resolve, reject) => {
      asked.set(id, { resolve, reject, progress, message: { id, name, args } });
    });
    (send ||= begin())({ id, name, args });
    promise.stop = () => {
      if (asked.has(id)) send({ stop: id });
      hear({ id, error: "stopped" });
    };
    return promise;
  }

  function hear({ id, result, error, done }) {
    if (!asked.has(id)) return; // it was stopped
    const { resolve, reject, progress } = asked.get(id);
    if (done !== undefined) return progress(done);
    asked.delete(id);
    if (error) reject(new Error(error));
    else resolve(result);
  }

  /* Start the Worker with the page's own scripts; where a browser allows none, all is worked out
  here, which is as right, but the page stands still meanwhile. */
  function begin() {
    const subject = { given: { config, weights, examples, labels, paper } };
    const scripts = ["model", "measures"].map((name) => document.getElementById(`script-${name}`));
    const source = scripts.map(({ textContent }) => textContent);
    source.push("onmessage = vitMeasures.server(postMessage.bind(self));");
    const here = () => {
      const serve = vitMeasures.server(hear);
      serve({ data: subject });
      return (data) => serve({ data });
    };
    try {
      const worker = new Worker(URL.createObjectURL(new Blob(source, { type: "text/javascript" })));
      worker.onmessage = ({ data }) => hear(data);
      worker.onerror = () => {
        send = here();
        for (const { message } of asked.values()) send(message);
      };
      worker.postMessage(subject);
      return (message) => worker.postMessage(message);
    } catch {
      return here();
    }
  }

  /* Run the model on what is there now; what changes meanwhile makes it run once more. What is
  being found of the picture before is of no use any more. */
  let [running, again] = [false, false];
  let finding = null;
  let quickest = Infinity; // milliseconds of a run; the first ones are slow

  async function ask() {
    again = running;
    finding?.stop();
    finding = null;
    if (running) return;
    running = true;
    const { without, twin: beside } = state;
    const args = { pixels: state.base, covered: [...state.covered], without, beside };
    change({ run: await work("run", args), matters: null });
    running = false;
    quickest = Math.min(quickest, state.run.milliseconds);
    if (again) ask();
    else if (quickest * patches < 1000) findMatters();
  }

  /* What each patch matters: at once where the model is quick, else when somebody asks. */
  async function findMatters(progress) {
    finding?.stop();
    const args = { pixels: state.base, covered: [...state.covered], without: state.without };
    const mine = (finding = work("matters", args, progress));
    const matters = await mine.catch(() => null);
    if (mine !== finding) return; // another one was begun, or the picture changed
    finding = null;
    change({ matters });
  }

  /* A token's name: cls, or a patch by its number, counted from 0 as in the lessons. */
  const tokenName = (i) => (i === 0 ? "cls" : `patch ${i - 1}`);

  return {
    ...{ given, config, weights, classes, labels, examples, grid, patches, ink, paper, state },
    ...{ change, update, listen, nothingOut, show, showExample, pixels, isEmpty },
    ...{ work, findMatters, tokenName },
  };
})();
