"use strict";

/* The ViT of vit_steps once more, in plain JavaScript, for one image at a time.

Names are those of the Python: patchify, tokens, attention, block, vit. A matrix is an object
{rows, cols, data}, its numbers row after row in a Float32Array. Every function gives new matrices,
and `vit` gives all of them, for the page to show. It knows no page: `node --test` tests it, and a
Worker runs it. What can be taken out stands in `without`:

  positions: true             no position embeddings
  scale: true                 scores not divided by √d
  residuals: true             a branch's result in place of the stream, not added to it
  norms: ["blocks.2.norm1"]   these norms, by the names of their weights
  blocks: [1]                 these blocks
  heads: [[2, 0]]             head 0 of block 2
  hidden: [5, 6]              patches that cls may not look at, counted from 0
*/
const vitModel = (() => {
  const matrix = (rows, cols, data = new Float32Array(rows * cols)) => ({ rows, cols, data });
  const row = (x, i) => x.data.subarray(i * x.cols, (i + 1) * x.cols);

  function add(a, b) {
    const sums = a.data.map((value, i) => value + b.data[i]);
    return matrix(a.rows, a.cols, sums);
  }

  /* (N, in) by a weight (out, in): (N, out). A weight is fetched once for four rows. */
  function linear(x, weight, bias) {
    const y = matrix(x.rows, weight.rows);
    const { cols: n, data: from } = x;
    const { rows: outs, data: by } = weight;
    for (let i = 0; i < x.rows; i += 4) {
      const [a, b, c, d] = [0, 1, 2, 3].map((more) => Math.min(i + more, x.rows - 1) * n);
      for (let o = 0; o < outs; o++) {
        let p = bias ? bias.data[o] : 0;
        let [q, r, s] = [p, p, p];
        for (let k = 0, w = o * n; k < n; k++, w++) {
          p += from[a + k] * by[w];
          q += from[b + k] * by[w];
          r += from[c + k] * by[w];
          s += from[d + k] * by[w];
        }
        const to = i * outs + o;
        y.data[to] = p;
        if (i + 1 < x.rows) y.data[to + outs] = q;
        if (i + 2 < x.rows) y.data[to + 2 * outs] = r;
        if (i + 3 < x.rows) y.data[to + 3 * outs] = s;
      }
    }
    return y;
  }

  /* Each row to mean 0 and standard deviation 1, then the learned scale and shift. */
  function layerNorm(x, weight, bias, eps) {
    const y = matrix(x.rows, x.cols);
    for (let i = 0; i < x.rows; i++) {
      const values = row(x, i);
      const mean = values.reduce((sum, value) => sum + value, 0) / x.cols;
      const spread = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.cols;
      const root = Math.sqrt(spread + eps);
      for (let j = 0; j < x.cols; j++) {
        y.data[i * x.cols + j] = ((values[j] - mean) / root) * weight.data[j] + bias.data[j];
      }
    }
    return y;
  }

  const POWERS = [0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429];

  /* Abramowitz and Stegun 1964, 7.1.26: right to 1.5e-7. */
  function erf(x) {
    const t = 1 / (1 + 0.3275911 * Math.abs(x));
    const [a, b, c, d, e] = POWERS;
    const sum = t * (a + t * (b + t * (c + t * (d + t * e))));
    return Math.sign(x) * (1 - sum * Math.exp(-x * x));
  }

  function gelu(x) {
    const bent = x.data.map((v) => 0.5 * v * (1 + erf(v / Math.SQRT2)));
    return matrix(x.rows, x.cols, bent);
  }

  /* Of each row; its largest number is taken away first, which changes nothing but overflow. */
  function softmax(x) {
    const y = matrix(x.rows, x.cols);
    for (let i = 0; i < x.rows; i++) {
      const values = row(x, i);
      const most = values.reduce((a, b) => Math.max(a, b), -Infinity);
      const powers = Array.from(values, (value) => Math.exp(value - most));
      const sum = powers.reduce((a, b) => a + b, 0);
      powers.forEach((power, j) => (y.data[i * x.cols + j] = power / sum));
    }
    return y;
  }

  /* Pixels (C, H, W), channel after channel: (n, P·P·C), as patchify of patches.py. */
  function patchify(pixels, config) {
    const { height, width, in_channels: C, patch_size: P } = config;
    const rows = height / P,
      cols = width / P;
    const x = matrix(rows * cols, P * P * C);
    let at = 0;
    for (let r = 0; r < rows; r++) {
      for (let c = 0; c < cols; c++) {
        for (let p = 0; p < P * P; p++) {
          const y = r * P + Math.floor(p / P),
            left = c * P + (p % P);
          for (let channel = 0; channel < C; channel++) {
            x.data[at++] = pixels[(channel * height + y) * width + left];
          }
        }
      }
    }
    return x;
  }

  /* The convolution's weight (D, C, P, P) as that of a Linear on patches: (D, P·P·C). */
  function templates(weight, config) {
    const { in_channels: C, patch_size: P, embed_dim: D } = config;
    const x = matrix(D, P * P * C);
    for (let o = 0; o < D; o++) {
      for (let p = 0; p < P * P; p++) {
        for (let c = 0; c < C; c++) {
          x.data[(o * P * P + p) * C + c] = weight.data[(o * C + c) * P * P + p];
        }
      }
    }
    return x;
  }

  /* Patch tokens (n, D): cls in front, and positions added: (N, D). */
  function tokens(patches, weights, without) {
    const D = patches.cols;
    const x = matrix(patches.rows + 1, D);
    x.data.set(weights["tokens.cls_token"].data);
    x.data.set(patches.data, D);
    const positions = matrix(x.rows, D, weights["tokens.pos_embed"].data);
    return without.positions ? x : add(x, positions);
  }

  /* Part `which` (0 q, 1 k, 2 v) of one head, from (N, 3·D) in the order (qkv h d): (N, d). */
  function splitHead(qkv, which, head, numHeads) {
    const d = qkv.cols / 3 / numHeads;
    const x = matrix(qkv.rows, d);
    const start = (which * numHeads + head) * d;
    for (let i = 0; i < qkv.rows; i++) {
      x.data.set(row(qkv, i).subarray(start, start + d), i * d);
    }
    return x;
  }

  /* One head: q, k, v (N, d); products, scores and weights (N, N); mixed (N, d). */
  function attention(q, k, v, without) {
    const products = linear(q, k);
    const divisor = without.scale ? 1 : Math.sqrt(q.cols);
    const scaled = products.data.map((value) => value / divisor);
    const scores = matrix(q.rows, k.rows, scaled);
    for (const patch of without.hidden || []) scores.data[patch + 1] = -Infinity; // cls's row
    const weights = softmax(scores);
    const mixed = matrix(q.rows, v.cols);
    for (let i = 0; i < q.rows; i++) {
      const to = row(mixed, i);
      for (let j = 0; j < k.rows; j++) {
        const weight = row(weights, i)[j],
          from = row(v, j);
        for (let c = 0; c < v.cols; c++) to[c] += weight * from[c];
      }
    }
    return { q, k, v, products, scores, weights, mixed };
  }

  /* Heads (N, d) side by side: (N, D). */
  function mergeHeads(heads) {
    const d = heads[0].cols;
    const x = matrix(heads[0].rows, d * heads.length);
    heads.forEach((head, h) => {
      for (let i = 0; i < x.rows; i++) x.data.set(row(head, i), i * x.cols + h * d);
    });
    return x;
  }

  /* Block number `index`: every step of it, from `input` to `output` (N, D). */
  function block(input, index, weights, config, without) {
    const name = `blocks.${index}.`;
    const of = (part) => weights[name + part];
    const apply = (part, x) => linear(x, of(`${part}.weight`), of(`${part}.bias`));
    const norm = (part, x) => normed(x, name + part, weights, config, without);
    const stream = (x, branch) => (without.residuals ? branch : add(x, branch));

    const norm1 = norm("norm1", input);
    const qkv = apply("attn.qkv", norm1);
    const heads = [];
    for (let h = 0; h < config.num_heads; h++) {
      const [q, k, v] = [0, 1, 2].map((which) => splitHead(qkv, which, h, config.num_heads));
      const head = attention(q, k, v, without);
      const out = (without.heads || []).some(([b, gone]) => b === index && gone === h);
      heads.push(out ? { ...head, mixed: matrix(q.rows, q.cols), gone: true } : head);
    }
    const merged = mergeHeads(heads.map((head) => head.mixed));
    const attended = apply("attn.proj", merged);
    const middle = stream(input, attended);
    const norm2 = norm("norm2", middle);
    const hidden = apply("mlp.fc1", norm2);
    const bent = gelu(hidden);
    const made = apply("mlp.fc2", bent);
    const output = stream(middle, made);
    return { input, norm1, heads, merged, attended, middle, norm2, hidden, bent, made, output };
  }

  function normed(x, name, weights, config, without) {
    if ((without.norms || []).includes(name)) return x;
    return layerNorm(x, weights[`${name}.weight`], weights[`${name}.bias`], config.norm_eps);
  }

  /* What the head says of a stream (N, D): its norm, what is pooled, logits (1, classes). */
  function read(x, weights, config, without = {}) {
    const norm = normed(x, "norm", weights, config, without);
    const pooled = matrix(1, x.cols, row(norm, 0).slice());
    if (config.pool === "mean") {
      pooled.data.fill(0);
      for (let i = 1; i < x.rows; i++) {
        row(norm, i).forEach((value, j) => (pooled.data[j] += value / (x.rows - 1)));
      }
    }
    const logits = linear(pooled, weights["head.weight"], weights["head.bias"]);
    return { norm, pooled, logits, probabilities: softmax(logits) };
  }

  /* Pixels (C, H, W), already normalised: every step to the logits. */
  function vit(pixels, weights, config, without = {}) {
    const patches = patchify(pixels, config);
    const kernel = templates(weights["patch_embed.proj.weight"], config);
    const embedded = linear(patches, kernel, weights["patch_embed.proj.bias"]);
    const start = tokens(embedded, weights, without);
    const blocks = [];
    let x = start;
    for (let i = 0; i < config.depth; i++) {
      const steps = block(x, i, weights, config, without);
      const gone = (without.blocks || []).includes(i);
      blocks.push(gone ? { ...steps, output: x, gone } : steps);
      x = blocks[i].output;
    }
    const said = read(x, weights, config, without);
    return { pixels, without, patches, embedded, start, blocks, ...said };
  }

  /* What a token takes from each token (cls first): "head" of a block, the "mean" of its heads that
  are not gone, or "rollout", the product of all blocks' means, each half identity, which is the
  residual's. A block that is gone is passed by; without residuals there is no identity. */
  function looks({ blocks, without }, kind, query, block, head) {
    if (kind === "rollout") return row(rollout(blocks, !without.residuals), query);
    const { heads } = blocks[block];
    return kind === "head" ? row(heads[head].weights, query) : row(meanOf(heads), query);
  }

  function meanOf(heads) {
    const N = heads[0].weights.rows;
    const mean = matrix(N, N);
    const used = heads.filter(({ gone }) => !gone);
    for (const { weights } of used) {
      weights.data.forEach((weight, i) => (mean.data[i] += weight / used.length));
    }
    return mean;
  }

  function rollout(blocks, residuals = true) {
    const N = blocks[0].input.rows;
    let whole = matrix(N, N);
    for (let i = 0; i < N; i++) whole.data[i * N + i] = 1;
    for (const { heads, gone } of blocks) {
      if (gone) continue;
      const own = residuals ? (heads.every((head) => head.gone) ? 1 : 0.5) : 0;
      const mean = meanOf(heads);
      const next = matrix(N, N);
      for (let i = 0; i < N; i++) {
        const to = row(next, i);
        row(whole, i).forEach((value, j) => (to[j] = own * value));
        for (let m = 0; m < N; m++) {
          const share = (1 - own) * mean.data[i * N + m];
          if (share) row(whole, m).forEach((value, j) => (to[j] += share * value));
        }
      }
      whole = next;
    }
    return whole;
  }

  // Pictures --------------------------------------------------------------------------------------

  /* Pixels (C, H, W) with some patches covered: by `paper`, or, without, by the picture's own mean
  colour, which says nothing that the rest of the picture does not. */
  function cover(pixels, patches, config, paper) {
    const { height: H, width: W, in_channels: C, patch_size: P } = config;
    const x = pixels.slice();
    for (let c = 0; c < C; c++) {
      const channel = x.subarray(c * H * W, (c + 1) * H * W);
      const fill = paper ?? channel.reduce((sum, value) => sum + value, 0) / (H * W);
      for (const patch of patches) {
        const top = Math.floor(patch / (W / P)) * P;
        const left = (patch % (W / P)) * P;
        for (let r = top; r < top + P; r++) channel.fill(fill, r * W + left, r * W + left + P);
      }
    }
    return x;
  }

  /* A stroke of the pen between two places (row, column) on pixels (1, H, W): what it covers of a
  pixel becomes ink. A pixel whose middle lies PEN from the stroke stays as it is. So the data's
  digits were made, of finer pictures. */
  const PEN = 1.15;

  function stroke(pixels, from, to, { width: W }, erase = false) {
    return pixels.map((old, i) => {
      const far = distance([Math.floor(i / W) + 0.5, (i % W) + 0.5], from, to);
      const ink = 2 * Math.min(1, Math.max(0, PEN - far)) - 1;
      return erase ? Math.min(old, -ink) : Math.max(old, ink);
    });
  }

  /* From a place to a stretch between two others. */
  function distance([r, c], [r1, c1], [r2, c2]) {
    const long = (r2 - r1) ** 2 + (c2 - c1) ** 2;
    const along = long ? ((r - r1) * (r2 - r1) + (c - c1) * (c2 - c1)) / long : 0;
    const share = Math.min(1, Math.max(0, along));
    return Math.hypot(r - r1 - share * (r2 - r1), c - c1 - share * (c2 - c1));
  }

  /* How much stands on a picture: of ink, its share; else how far its pixels spread. */
  function filled(pixels, ink) {
    const mean = pixels.reduce((sum, value) => sum + value, 0) / pixels.length;
    if (ink) return (mean + 1) / 2;
    return Math.sqrt(pixels.reduce((sum, value) => sum + (value - mean) ** 2, 0) / pixels.length);
  }

  /* A line of numbers resized as PyTorch's antialiased bicubic does: each result is a weighted sum
  of its surroundings, four steps of the result wide. Gives [first, weights] for each. */
  function resizing(length, wanted) {
    const step = length / wanted;
    const wide = Math.max(step, 1);
    const cubic = (t) =>
      t < 1 ? (1.5 * t - 2.5) * t * t + 1 : t < 2 ? ((-0.5 * t + 2.5) * t - 4) * t + 2 : 0;
    return Array.from({ length: wanted }, (_, i) => {
      const middle = (i + 0.5) * step;
      const first = Math.max(0, Math.floor(middle - 2 * wide + 0.5));
      const last = Math.min(length, Math.floor(middle + 2 * wide + 0.5));
      const raw = Array.from({ length: last - first }, (_, k) =>
        cubic(Math.abs((first + k + 0.5 - middle) / wide)),
      );
      const sum = raw.reduce((a, b) => a + b, 0);
      return [first, raw.map((weight) => weight / sum)];
    });
  }

  /* Bytes of red, green, blue and alpha as pixels (3, H, W) from −1 to 1 as Preprocess makes them:
  the shorter side (or what it takes) resized to fit, the middle cut out. */
  function shrink(bytes, width, height, config) {
    const { height: H, width: W } = config;
    const [to, of] = H * width > W * height ? [H, height] : [W, width];
    const [rows, cols] = [height, width].map((side) => Math.floor((side * to) / of));
    const across = resizing(width, cols).slice((cols - W) >> 1, ((cols - W) >> 1) + W);
    const down = resizing(height, rows).slice((rows - H) >> 1, ((rows - H) >> 1) + H);
    const x = new Float32Array(3 * H * W);
    for (let c = 0; c < 3; c++) {
      const narrow = new Float32Array(height * W);
      across.forEach(([first, weights], j) => {
        for (let r = 0; r < height; r++) {
          let sum = 0;
          const at = 4 * (r * width + first) + c;
          for (let k = 0; k < weights.length; k++) sum += weights[k] * bytes[at + 4 * k];
          narrow[r * W + j] = sum;
        }
      });
      down.forEach(([first, weights], i) => {
        for (let j = 0; j < W; j++) {
          const sum = weights.reduce((all, by, k) => all + by * narrow[(first + k) * W + j], 0);
          x[(c * H + i) * W + j] = Math.min(255, Math.max(0, sum)) / 127.5 - 1;
        }
      });
    }
    return x;
  }

  return {
    ...{ matrix, row, linear, layerNorm, erf, gelu, softmax, patchify, templates, tokens },
    ...{ splitHead, attention, mergeHeads, block, read, vit, rollout, meanOf, looks },
    ...{ cover, stroke, filled, shrink },
  };
})();
