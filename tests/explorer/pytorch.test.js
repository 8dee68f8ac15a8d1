"use strict";

/* The page's numbers beside PyTorch's, which tests/test_explorer_numbers.py writes to FIXTURE. */
const test = require("node:test");
const assert = require("node:assert");
const { readFileSync } = require("node:fs");
const { load } = require("./load.js");

/* A tensor comes as its shape and its numbers of 32 bits, in base64. */
function revive(_, value) {
  if (value?.float32 === undefined) return value;
  const bytes = Uint8Array.from(Buffer.from(value.float32, "base64"));
  return { shape: value.shape, data: new Float32Array(bytes.buffer) };
}

/* What the page says is what PyTorch says, name by name and number by number. */
function compare(page, torch, place, atol) {
  if (torch?.shape) {
    const data = page.data ?? page;
    if (page.rows) assert.deepStrictEqual([page.rows, page.cols], torch.shape, place);
    assert.strictEqual(data.length, torch.data.length, place);
    torch.data.forEach((wanted, i) => {
      const near = data[i] === wanted || Math.abs(data[i] - wanted) <= atol; // −∞ is −∞
      assert.ok(near, `${place}[${i}]: ${data[i]} is not ${wanted}`);
    });
  } else if (Object(torch) === torch) {
    const names = Object.keys(page).filter((name) => name !== "gone"); // a mark of what is out
    assert.deepStrictEqual(names.sort(), Object.keys(torch).sort(), place);
    for (const name of names) compare(page[name], torch[name], `${place}.${name}`, atol);
  } else {
    assert.ok(Math.abs(page - torch) <= atol, `${place}: ${page} is not ${torch}`);
  }
}

const KINDS = {
  /* Every step of some runs, and what the tokens look at. */
  runs({ given, runs }) {
    const { vitModel, vitState } = load(given);
    for (const { pixels, without, wanted, looks, atol } of runs) {
      const place = JSON.stringify(without);
      const { weights, config } = vitState;
      const { pixels: _, without: __, ...run } = vitModel.vit(pixels.data, weights, config, without);
      compare(run, wanted, place, atol);
      for (const [kind, query, block, head, shares] of looks) {
        const found = vitModel.looks({ ...run, without }, kind, query, block, head);
        compare(found, shares, `${place} ${kind} ${query} ${block} ${head}`, atol);
      }
    }
  },

  /* The weights to the last bit. */
  weights({ given, wanted }) {
    compare(load(given).vitState.weights, wanted, "weights", 0);
  },

  /* A photo made small. */
  shrink({ bytes, width, height, config, wanted, atol }) {
    const { shrink } = load().vitModel;
    const found = shrink(Uint8ClampedArray.from(bytes.data), width, height, config);
    compare(found, wanted, `${width} by ${height}`, atol);
  },

  /* What is worked out with many runs, asked as the page asks for it. */
  async measures({ given, asked, twin }) {
    const { vitState, vitMeasures } = load(given);
    compare(vitMeasures.untrained(vitState.weights, vitState.config), twin, "the twin", 1e-6);
    for (const { name, args, wanted, atol } of asked) {
      const plain = Object.fromEntries(Object.entries(args).map(([k, v]) => [k, v.data ?? v]));
      const found = await vitState.work(name, plain);
      compare(found, wanted, `${name} ${JSON.stringify(args.without)}`, atol);
    }
  },
};

const file = process.env.FIXTURE;
if (!file) test("PyTorch's numbers", { skip: "tests/test_explorer_numbers.py brings them" });
for (const [name, fixture] of file ? JSON.parse(readFileSync(file, "utf8"), revive) : []) {
  test(name, () => KINDS[name](fixture));
}
