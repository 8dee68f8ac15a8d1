"use strict";

/* The page's model in cases that one can work out by hand. */
const test = require("node:test");
const { strictEqual: equal, deepStrictEqual: same } = require("node:assert");
const { load } = require("./load.js");

const { vitModel: m } = load();
const numbers = (x) => Array.from(x.data ?? x, (value) => Math.round(value * 1000) / 1000 + 0);
const of = (...rows) => m.matrix(rows.length, rows[0].length, Float32Array.from(rows.flat()));
const SQUARE = { height: 4, width: 4, in_channels: 1, patch_size: 2 };
const COUNTED = Float32Array.from({ length: 16 }, (_, i) => i); // 0 1 2 3 / 4 5 6 7 / …

test("softmax: three times as likely is log 3 more", () => {
  same(numbers(m.softmax(of([0, Math.log(3)]))), [0.25, 0.75]);
  same(numbers(m.softmax(of([5, 5, 5, 5], [1000, 1000, -Infinity, 0]))), [
    ...[0.25, 0.25, 0.25, 0.25],
    ...[0.5, 0.5, 0, 0], // nothing overflows
  ]);
});

test("layerNorm: 1 and 3 have the mean 2 and the spread 1, then scale and shift", () => {
  same(numbers(m.layerNorm(of([1, 3], [10, 30]), of([1, 1]), of([0, 0]), 0)), [-1, 1, -1, 1]);
  same(numbers(m.layerNorm(of([1, 3]), of([2, 10]), of([0, 5]), 0)), [-2, 15]);
  same(numbers(m.layerNorm(of([1, 3]), of([1, 1]), of([0, 0]), 3)), [-0.5, 0.5]); // 1 / √(1 + 3)
});

test("linear: each row of the weight asks each row of x; five rows are more than four", () => {
  const x = of([1, 0], [0, 1], [1, 1], [2, 0], [0, 3]);
  const y = m.linear(x, of([1, 10], [2, 20], [3, 30]), of([0, 0, 100]));
  same([y.rows, y.cols], [5, 3]);
  same(numbers(y), [1, 2, 103, 10, 20, 130, 11, 22, 133, 2, 4, 106, 30, 60, 190]);
});

test("gelu: far right it is x, far left 0, at 1 the share of a bell left of 1", () => {
  same(numbers(m.gelu(of([-9, 0, 1, 9]))), [0, 0, 0.841, 9]);
});

test("patchify: patches in reading order, in each its pixels in reading order", () => {
  const x = m.patchify(COUNTED, SQUARE);
  same(numbers(m.row(x, 0)), [0, 1, 4, 5]);
  same(numbers(m.row(x, 1)), [2, 3, 6, 7]);
  same(numbers(m.row(x, 2)), [8, 9, 12, 13]);
});

test("patchify: of two channels, a pixel's numbers stand together; 2 by 6 has three patches", () => {
  const wide = { height: 2, width: 6, in_channels: 2, patch_size: 2 };
  const pixels = Float32Array.from({ length: 24 }, (_, i) => (i < 12 ? i : 100 + i - 12));
  const x = m.patchify(pixels, wide);
  same([x.rows, x.cols], [3, 8]);
  same(numbers(m.row(x, 2)), [4, 104, 5, 105, 10, 110, 11, 111]);
});

test("attention: equal scores mix evenly, and cls does not look where it may not", () => {
  const k = of([1, 0], [1, 0], [1, 0]);
  const v = of([0], [3], [6]);
  same(numbers(m.attention(k, k, v, {}).mixed), [3, 3, 3]);
  same(numbers(m.attention(k, k, v, { hidden: [1] }).mixed), [1.5, 3, 3]);
  const q = of([2 * Math.SQRT2, 0], [0, 0], [0, 0]);
  same(numbers(m.row(m.attention(q, k, v, {}).scores, 0)), [2, 2, 2]);
  same(numbers(m.row(m.attention(q, k, v, { scale: true }).scores, 0)), [2.828, 2.828, 2.828]);
});

test("rollout: half of each step stays with the token; a mean of heads leaves out who is gone", () => {
  const head = (...rows) => ({ weights: of(...rows) });
  const swap = head([0, 1], [1, 0]);
  const stay = head([1, 0], [0, 1]);
  const steps = (...heads) => ({ input: of([0], [0]), heads });
  same(numbers(m.rollout([steps(swap)])), [0.5, 0.5, 0.5, 0.5]);
  same(numbers(m.rollout([steps(swap)], false)), [0, 1, 1, 0]);
  same(numbers(m.rollout([steps(swap, stay)])), [0.75, 0.25, 0.25, 0.75]);
  same(numbers(m.rollout([steps(swap, { ...stay, gone: true })])), [0.5, 0.5, 0.5, 0.5]);
  same(numbers(m.rollout([steps({ ...swap, gone: true })])), [1, 0, 0, 1]);
  same(numbers(m.rollout([{ ...steps(swap), gone: true }, steps(stay)])), [1, 0, 0, 1]);
});

test("stroke: ink where the pen goes, fading beside it, and the rubber undoes it", () => {
  const line = { height: 3, width: 7 };
  const blank = new Float32Array(21).fill(-1);
  const dot = m.stroke(blank, [1.5, 1.5], [1.5, 1.5], line);
  // The middles of the pixels beside it lie 1 away, 0.15 under the pen; aslant 1.41, not at all.
  same(numbers(dot.subarray(0, 4)), [-1, -0.7, -1, -1]);
  same(numbers(dot.subarray(7, 11)), [-0.7, 1, -0.7, -1]);
  const long = m.stroke(dot, [1.5, 1.5], [1.5, 5.5], line);
  same(numbers(long.subarray(7, 14)), [-0.7, 1, 1, 1, 1, 1, -0.7]);
  same(numbers(long.subarray(0, 7)), [-1, -0.7, -0.7, -0.7, -0.7, -0.7, -1]);
  const rubbed = m.stroke(long, [1.5, 1.5], [1.5, 5.5], line, true);
  equal(Math.max(...rubbed), Math.fround(-0.7)); // a brim of ink, as faint as beside a line
  same(numbers(rubbed.subarray(8, 13)), [-1, -1, -1, -1, -1]);
});

test("cover: a patch becomes paper, or each channel's mean over the whole picture", () => {
  const covered = m.cover(COUNTED, [1], SQUARE, -1);
  same(numbers(covered.subarray(0, 8)), [0, 1, -1, -1, 4, 5, -1, -1]);
  equal(COUNTED[2], 2); // a picture of its own
  const two = { height: 2, width: 4, in_channels: 2, patch_size: 2 };
  const pixels = Float32Array.from([0, 0, 8, 8, 0, 0, 8, 8, 1, 1, 1, 1, 1, 1, 1, 1]);
  same(numbers(m.cover(pixels, [0], two)), [4, 4, 8, 8, 4, 4, 8, 8, 1, 1, 1, 1, 1, 1, 1, 1]);
  same(numbers(m.cover(pixels, [0, 1], two).subarray(0, 8)), [4, 4, 4, 4, 4, 4, 4, 4]);
});

test("filled: the share of ink, or how far a photo's pixels spread", () => {
  equal(m.filled(Float32Array.from([-1, -1, -1, 1]), true), 0.25);
  equal(m.filled(Float32Array.from([0.5, 0.5, 0.5]), false), 0);
  equal(m.filled(Float32Array.from([-1, 1]), false), 1);
});
