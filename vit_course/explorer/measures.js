"use strict";

/* What is worked out with many runs of the model, each function of a `subject`: {config, weights,
twin, examples, labels, paper}. All that takes long awaits `tick(done, of)` now and then, so that a
Worker can tell how far it is, answer something else in between, and be stopped. No page is needed.
*/
const vitMeasures = (() => {
  const { matrix, row, vit, read, cover, looks, rollout, patchify } = vitModel;
  const best = (values) => values.indexOf(Math.max(...values));
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

  /* The picture as the page shows it: whole, and, where something is covered or left out, without
  that; beside them the untrained twin. */
  function run(subject, { pixels, covered, without, beside }) {
    const { config, weights, twin, paper } = subject;
    if (!subject.last?.whole.pixels.every((value, i) => value === pixels[i])) {
      const start = performance.now();
      const whole = vit(pixels, weights, config);
      subject.last = { whole, milliseconds: performance.now() - start }; // for what is covered next
    }
    const { whole, milliseconds } = subject.last;
    const out = covered.length > 0 || Object.values(without).some((v) => v === true || v.length);
    const seen = cover(pixels, covered, config, paper);
    const shown = out ? vit(seen, weights, config, without) : whole;
    return { whole, shown, out, milliseconds, twin: beside && vit(seen, twin, config, without) };
  }

  /* `made` of the model's run on each picture. */
  async function overAll({ config, weights }, pictures, without, tick, made) {
    const found = [];
    for (const [i, picture] of pictures.entries()) {
      found.push(made(vit(picture, weights, config, without), i));
      await tick(i + 1, pictures.length);
    }
    return found;
  }

  const right = (labels, runs) => runs.filter((shares, i) => best(shares) === labels[i]).length;

  const shares = ({ probabilities }) => probabilities.data;

  /* How far it is in part i of n that take as long. */
  const part = (tick, i, n) => (done, of) => tick(i * of + done, n * of);

  /* How many examples are read rightly, whole and without something. */
  async function count(subject, { without, covered = [] }, tick) {
    const { examples, labels, config, paper } = subject;
    const pictures = examples.map((x) => cover(x, covered, config, paper));
    const before = await overAll(subject, examples, {}, part(tick, 0, 2), shares);
    const after = await overAll(subject, pictures, without, part(tick, 1, 2), shares);
    return { before: right(labels, before), after: right(labels, after), of: examples.length };
  }

  /* What each patch matters: the shares of the classes when it, too, is covered, a row a patch. */
  async function matters(subject, { pixels, covered = [], without }, tick) {
    const { config, paper } = subject;
    const patches = (config.height / config.patch_size) * (config.width / config.patch_size);
    const all = (i) => cover(pixels, [...covered, i], config, paper);
    const pictures = Array.from({ length: patches }, (_, i) => all(i));
    const rows = await overAll(subject, pictures, without, tick, shares);
    const x = matrix(patches, config.num_classes);
    rows.forEach((values, i) => row(x, i).set(values));
    return x;
  }

  /* What the head says of the stream at the start and after each block: the logit lens. */
  function lens({ start, blocks, without }, weights, config) {
    const streams = [start, ...blocks.map(({ output }) => output)];
    return streams.map((x) => read(x, weights, config, without).probabilities.data);
  }

  /* Of how many examples the head reads the class from the stream before and after each block. */
  async function lenses(subject, _, tick) {
    const { examples, labels, weights, config } = subject;
    const all = await overAll(subject, examples, {}, tick, (one) => lens(one, weights, config));
    const after = (b) => all.map((one) => one[b]);
    return all[0].map((_, b) => right(labels, after(b)));
  }

  /* How bright each patch of a picture is. */
  function brightness(pixels, config) {
    const x = patchify(pixels, config);
    return Array.from({ length: x.rows }, (_, i) => mean(Array.from(row(x, i))));
  }

  /* The largest weight that cls gives, as a mean over heads and blocks, with √d and without. */
  async function sharpness(subject, _, tick) {
    const largest = ({ weights }) => Math.max(...row(weights, 0));
    const made = (one) => ({
      sharp: mean(one.blocks.flatMap(({ heads }) => heads.map(largest))),
      shares: shares(one),
    });
    const a = await overAll(subject, subject.examples, {}, part(tick, 0, 2), made);
    const b = await overAll(subject, subject.examples, { scale: true }, part(tick, 1, 2), made);
    const [before, after] = [a, b].map((all) => mean(all.map(({ sharp }) => sharp)));
    const said = b.map((one) => one.shares);
    return { before, after, right: right(subject.labels, said) };
  }

  /* Of how many examples the class is read when cls may not look at one patch: the one that rollout
  marks most, or one drawn by lot from the others that are not empty (of a photo none is). */
  async function reasons(subject, _, tick) {
    const { examples, labels, config, weights, paper } = subject;
    const draw = generator(1);
    const found = { before: [], marked: [], drawn: [] };
    for (const [i, picture] of examples.entries()) {
      const one = vit(picture, weights, config);
      const top = best(row(rollout(one.blocks), 0).subarray(1));
      const light = brightness(picture, config);
      const others = [...light.keys()].filter((p) => p !== top && light[p] !== paper);
      const other = others[Math.floor(((draw.even() + 1) / 2) * others.length)] ?? top;
      found.before.push(shares(one));
      found.marked.push(shares(vit(picture, weights, config, { hidden: [top] })));
      found.drawn.push(shares(vit(picture, weights, config, { hidden: [other] })));
      await tick(i + 1, examples.length);
    }
    const counts = Object.entries(found).map(([name, runs]) => [name, right(labels, runs)]);
    return Object.fromEntries(counts);
  }

  // The untrained twin: the same sizes, weights as before training, the same in every visit -------

  function untrained(weights, config) {
    const draw = generator(1);
    const reach = Math.sqrt(1 / (config.in_channels * config.patch_size ** 2));
    const drawn = (name) => {
      if (/norm\d?\.weight$/.test(name)) return () => 1;
      if (name.startsWith("patch_embed")) return () => reach * draw.even();
      if (name.endsWith("bias")) return () => 0;
      return () => (name.endsWith("pos_embed") ? 0.2 : 0.02) * draw.normal();
    };
    const twin = {};
    for (const [name, { rows, cols, data }] of Object.entries(weights)) {
      twin[name] = matrix(rows, cols, data.map(drawn(name)));
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

  const MEASURES = { run, count, matters, lenses, sharpness, reasons };

  // In a Worker -----------------------------------------------------------------------------------

  /* Answers messages {id, name, args} with {id, result} or {id, error}, and on the way {id, done};
  {stop: id} ends one. The first message is the subject. `tell` sends an answer. */
  function server(tell) {
    let subject = null;
    const stopped = new Set();
    return async ({ data: { id, name, args, stop, given } }) => {
      if (given) return void (subject = { ...given, twin: untrained(given.weights, given.config) });
      if (stop) return void stopped.add(stop);
      let rested = performance.now();
      const tick = async (done, of) => {
        if (performance.now() - rested < 30) return;
        tell({ id, done: done / of });
        await new Promise((resolve) => setTimeout(resolve));
        if (stopped.delete(id)) throw new Error("stopped");
        rested = performance.now();
      };
      try {
        tell({ id, result: await MEASURES[name](subject, args, tick) });
      } catch (error) {
        tell({ id, error: error.message });
      }
    };
  }

  return { ...MEASURES, lens, brightness, untrained, generator, best, mean, server, looks };
})();
