"use strict";

/* What the page's Worker answers, and what the page's state makes of it, with a model of 6 numbers a
token that nobody trained, and a clock that runs 20 milliseconds each time it is looked at. */
const test = require("node:test");
const { strictEqual: equal, deepStrictEqual: same, rejects, throws } = require("node:assert");
const { load } = require("./load.js");

const CONFIG = {
  ...{ height: 4, width: 4, patch_size: 2, in_channels: 1, num_classes: 2 },
  ...{ embed_dim: 6, depth: 1, num_heads: 2, pool: "cls", norm_eps: 1e-6 },
};
const SHAPES = {
  "tokens.cls_token": [1, 1, 6],
  "tokens.pos_embed": [1, 5, 6],
  "patch_embed.proj.weight": [6, 1, 2, 2],
  "patch_embed.proj.bias": [6],
  "blocks.0.norm1.weight": [6],
  "blocks.0.norm1.bias": [6],
  "blocks.0.attn.qkv.weight": [18, 6],
  "blocks.0.attn.proj.weight": [6, 6],
  "blocks.0.attn.proj.bias": [6],
  "blocks.0.norm2.weight": [6],
  "blocks.0.norm2.bias": [6],
  "blocks.0.mlp.fc1.weight": [12, 6],
  "blocks.0.mlp.fc1.bias": [12],
  "blocks.0.mlp.fc2.weight": [6, 12],
  "blocks.0.mlp.fc2.bias": [6],
  "norm.weight": [6],
  "norm.bias": [6],
  "head.weight": [2, 6],
  "head.bias": [2],
};

/* What a page would be given, its weights drawn by a rule, and two examples. */
function given() {
  const weights = {};
  for (const [name, shape] of Object.entries(SHAPES)) {
    const count = shape.reduce((a, b) => a * b);
    const numbers = Float32Array.from({ length: count }, (_, i) => Math.sin(1 + i * 2.3));
    const data = Buffer.from(numbers.buffer).toString("base64");
    weights[name] = { shape, kind: "float32", data };
  }
  const images = [0, 100].map((first) => Buffer.from(Array.from({ length: 16 }, (_, i) => first + 9 * i)).toString("base64")); // prettier-ignore
  return { config: CONFIG, weights, images, labels: [0, 1], classes: ["a", "b"], ink: true };
}

/* The page's parts, with a clock, and with frames that come when they are called for. */
function page(more = {}) {
  let now = 0;
  let frame = null;
  const made = load(given(), {
    performance: { now: () => (now += 20) },
    requestAnimationFrame: (callback) => ((frame = callback), 1),
    cancelAnimationFrame: () => (frame = null),
    ...more,
  });
  return { ...made, draw: () => frame?.() };
}

/* A server with its subject, and what it told, which `until` waits for. */
function served() {
  const { vitMeasures, vitState } = page();
  const told = [];
  let heard = () => {};
  const serve = vitMeasures.server((message) => heard(told.push(message)));
  const { config, weights, examples, labels, paper } = vitState;
  serve({ data: { given: { config, weights, examples, labels, paper } } });
  const until = (right) =>
    new Promise((resolve) => {
      heard = () => right(told.at(-1)) && resolve(told.at(-1));
    });
  return { serve: (data) => setTimeout(() => serve({ data })), told, until }; // as messages come
}

const RUN = { pixels: new Float32Array(16), covered: [], without: {}, beside: false };

test("it answers, and says on the way how far it is", async () => {
  for (const name of ["matters", "count"]) {
    const { serve, told, until } = served();
    const done = until(({ result }) => result);
    serve({ id: 7, name, args: { pixels: RUN.pixels, without: {} } });
    const { id, result } = await done;
    equal(id, 7);
    if (name === "matters") same([result.rows, result.cols], [4, 2]);
    const shares = told.slice(0, -1).map((one) => one.done);
    equal(shares.length > 1, true);
    equal(shares.every((share, i) => share > (shares[i - 1] ?? 0) && share <= 1), true); // prettier-ignore
  }
});

test("what it is stopped in has no result, and the next has one", async () => {
  const { serve, told, until } = served();
  const begun = until(({ done }) => done);
  serve({ id: 1, name: "matters", args: { pixels: RUN.pixels, without: {} } });
  await begun;
  const stopped = until(({ error }) => error);
  serve({ stop: 1 });
  same(await stopped, { id: 1, error: "stopped" });
  const done = until(({ result }) => result);
  serve({ id: 2, name: "count", args: { without: {} } });
  equal((await done).result.of, 2);
  equal(told.some(({ id, result }) => id === 1 && result), false);
});

test("what goes wrong is told, and the next is answered", async () => {
  const { serve, until } = served();
  const wrong = until(({ error }) => error);
  serve({ id: 1, name: "run", args: {} });
  equal((await wrong).id, 1);
  const done = until(({ result }) => result);
  serve({ id: 2, name: "run", args: RUN });
  equal((await done).result.out, false);
});

test("a run is answered while a long job is under way", async () => {
  const { serve, told, until } = served();
  const begun = until(({ done }) => done);
  serve({ id: 1, name: "matters", args: { pixels: RUN.pixels, without: {} } });
  await begun;
  const both = until(({ id, result }) => id === 1 && result);
  serve({ id: 2, name: "run", args: RUN });
  await both;
  same(told.filter(({ result }) => result).map(({ id }) => id), [2, 1]); // prettier-ignore
});

test("the twin runs beside it where it is asked for, and only then", async () => {
  const { serve, until } = served();
  for (const beside of [false, true]) {
    const done = until(({ result }) => result);
    serve({ id: 1, name: "run", args: { ...RUN, beside } });
    const { twin, shown } = (await done).result;
    equal(Boolean(twin), beside);
    if (beside) equal(Math.abs(twin.logits.data[0] - shown.logits.data[0]) > 1e-3, true);
  }
});

// The state -----------------------------------------------------------------------------------------

test("in a frame each listener hears once, and only of what it named", () => {
  const { vitState: s, draw } = page();
  const heard = [];
  s.listen("patch name", () => heard.push("pointed"));
  s.listen("block", () => heard.push("block"));
  s.change({});
  draw();
  same(heard.splice(0), ["pointed", "block"]); // all is new
  s.change({ patch: 1 });
  s.change({ patch: 2, name: 1 });
  same(heard, []);
  draw();
  same(heard.splice(0), ["pointed"]);
  s.change({ patch: 2 }); // as it is
  draw();
  same(heard, []);
  throws(() => s.change({ pach: 1 }), /no pach/);
});

/* Without a Worker: the answer comes after a few turns of the loop. */
const settled = () => new Promise((resolve) => setTimeout(resolve, 50));

test("the picture is read anew when it changes, and not when another thing does", async () => {
  const { vitState: s, vitModel, draw } = page();
  const runs = [];
  s.listen("run", ({ run }) => runs.push(run));
  s.showExample(1);
  for (const _ of [1, 2]) draw(await settled());
  same(runs.length, 1);
  const wanted = vitModel.vit(s.examples[1], s.weights, s.config);
  same(runs[0].shown.logits.data, wanted.logits.data);
  s.change({ patch: 3 });
  for (const _ of [1, 2]) draw(await settled());
  same(runs.length, 1);
  s.change({ covered: new Set([1]) });
  for (const _ of [1, 2]) draw(await settled());
  same(runs.length, 2);
  same(runs[1].whole.logits.data, wanted.logits.data);
  equal(runs[1].out, true);
  for (const patch of [2, 3, 0]) draw(s.change({ covered: new Set([patch]) })); // while it runs
  for (const _ of [1, 2]) draw(await settled());
  same(s.state.run.shown.pixels, s.pixels());
});

test("another picture has nothing covered or hidden, and the examples go round", () => {
  const { vitState: s } = page();
  s.showExample(0);
  const without = { ...s.nothingOut(), hidden: [2], blocks: [0] };
  s.change({ covered: new Set([1]), without });
  s.showExample(2);
  const { example, covered } = s.state;
  same([example, covered.size, s.state.without.hidden], [0, 0, []]);
  same(s.state.without.blocks, [0]); // a part of the model stays out
  s.showExample(-1);
  equal(s.state.example, 1);
});

test("what each patch matters is of the picture as it is, what is covered included", async () => {
  const { vitState: s, vitModel, draw } = page();
  s.showExample(1);
  s.change({ covered: new Set([0]) });
  for (const _ of [1, 2, 3]) draw(await settled());
  const both = vitModel.cover(s.examples[1], [0, 2], s.config, s.paper);
  const wanted = vitModel.vit(both, s.weights, s.config).probabilities.data;
  same(vitModel.row(s.state.matters, 2), wanted);
});

test("what is found of a picture is dropped with it", async () => {
  // So slow that what each patch matters is worked out only for who asks.
  let now = 0;
  const { vitState: s, draw } = page({ performance: { now: () => (now += 300) } });
  s.showExample(0);
  for (const _ of [1, 2]) draw(await settled());
  equal(s.state.matters, null);
  const old = s.findMatters();
  s.showExample(1);
  draw();
  await old; // ended at once
  equal(s.state.matters, null);
  for (const _ of [1, 2]) draw(await settled());
  equal(s.state.matters, null);
  await s.findMatters();
  equal(s.state.matters.rows, 4);
});

test("a job that is stopped is rejected at once, and what it still says is not heard", async () => {
  const { vitState: s } = page();
  const heard = [];
  const job = s.work("matters", { pixels: s.examples[0], without: {} }, (share) => heard.push(share));
  job.stop();
  const soon = new Promise((resolve) => setImmediate(resolve, "late"));
  await rejects(Promise.race([job, soon]), /stopped/);
  const before = heard.length;
  equal((await s.work("count", { without: {} })).of, 2);
  await settled();
  equal(heard.length, before);
});

/* A Worker that cannot be had: some browsers throw, others tell it later. */
const REFUSALS = {
  throws: class {
    constructor() {
      throw new Error("not allowed");
    }
  },
  "tells it": class {
    constructor() {
      setTimeout(() => this.onerror());
    }
    postMessage() {}
  },
};

for (const [name, refused] of Object.entries(REFUSALS)) {
  test(`without a Worker (the browser ${name}) all is worked out in the page`, async () => {
    const { vitState: s } = page({ Worker: refused });
    const found = await Promise.all([1, 2].map(() => s.work("count", { without: {} })));
    same(found.map(({ of }) => of), [2, 2]); // prettier-ignore
    equal((await s.work("run", RUN)).out, false);
  });
}
