"use strict";

/* Where it looks: attention over the picture, of every block and head on one scale, and the same of
a model that was never trained.
*/
const vitLooks = (() => {
  const { row, rollout } = vitModel;
  const { make, percent, drawMap, key, shading } = vitDrawing;
  const { config, state, change, tokenName } = vitState;
  const { depth: L, num_heads: h } = config;
  const KINDS = {
    head: "one head",
    mean: "the mean of a block's heads",
    rollout: "rollout, all blocks",
  };
  let kind = "head";

  /* What a token looks at: the shares of all tokens, cls first. */
  function shares(run, what, query, block, head) {
    if (what === "rollout") return row(rollout(run.blocks, !run.without.residuals), query);
    const { heads } = run.blocks[block];
    if (what === "head") return row(heads[head].weights, query);
    const mean = new Float32Array(run.start.rows);
    const used = heads.filter(({ gone }) => !gone);
    for (const { weights } of used) {
      row(weights, query).forEach((share, i) => (mean[i] += share / used.length));
    }
    return mean;
  }

  /* Whether what is chosen is left out, so that nothing of it reaches the answer. */
  function unused(run, what, block, head) {
    const { gone, heads } = run.blocks[block];
    if (what === "rollout") return false;
    return Boolean(gone || (what === "head" ? heads[head].gone : heads.every((one) => one.gone)));
  }

  /* The chosen kind's map, large, and its numbers in words. */
  function large(run, name, most) {
    const { query, block, head } = state;
    const all = shares(run, kind, query, block, head),
      own = all.subarray(1);
    const canvas = make("canvas", {
      width: 240,
      height: Math.round((240 * config.height) / config.width),
    });
    drawMap(canvas, run.pixels, config, own, most, query - 1);
    const top = Array.from(own.keys())
      .filter((i) => own[i] > 0)
      .sort((a, b) => own[b] - own[a])
      .slice(0, 3);
    const first = top.map((i) => `${i} (${percent(own[i])})`).join(", ");
    const words =
      `Of the patches, ${tokenName(query)} takes ` +
      (top.length ? `most from ${first}` : "nothing") +
      `; from cls it takes ${percent(all[0])}.` +
      (unused(run, kind, block, head) ? " It is left out: nothing of this is used." : "");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", words);
    const pointed = make("p", { className: "small formula" }, "Point at a patch for its share.");
    const tell = ({ offsetX, offsetY }) => {
      const part = (at, long, count) =>
        Math.max(0, Math.min(count - 1, Math.floor((at / long) * count)));
      const { rows, cols } = vitState.grid;
      const patch =
        part(offsetY, canvas.clientHeight, rows) * cols + part(offsetX, canvas.clientWidth, cols);
      pointed.textContent = `Patch ${patch}: ${percent(own[patch])}`;
    };
    for (const kind of ["pointermove", "pointerdown"]) canvas.addEventListener(kind, tell);
    return make(
      "figure",
      {},
      make("figcaption", {}, name),
      canvas,
      make("p", { className: "small" }, words),
      pointed,
    );
  }

  /* A small map for each block and head; a click chooses it. */
  function every(run, name, most) {
    const side = Math.max(28, Math.min(56, Math.floor(300 / h)));
    const body = make("table", { className: "maps" }, make("caption", {}, name));
    const line = make("tr", {}, make("td", {}));
    for (let j = 0; j < h; j++) line.append(make("th", { scope: "col" }, `head ${j}`));
    body.append(line);
    for (let b = 0; b < L; b++) {
      const cells = make("tr", {}, make("th", { scope: "row" }, `block ${b}`));
      for (let j = 0; j < h; j++) {
        const canvas = make("canvas", {
          width: side,
          height: Math.round((side * config.height) / config.width),
          "aria-hidden": "true",
        });
        drawMap(
          canvas,
          run.pixels,
          config,
          shares(run, "head", state.query, b, j).subarray(1),
          most,
        );
        const chosen =
          b === state.block && (kind === "mean" || (kind === "head" && j === state.head));
        const out = unused(run, "head", b, j);
        const button = make(
          "button",
          {
            type: "button",
            className: out ? "map gone" : "map",
            "aria-label": `block ${b}, head ${j}${out ? ", left out" : ""}`,
            "aria-pressed": String(chosen),
          },
          canvas,
        );
        button.addEventListener("click", () => {
          if (kind === "rollout") kind = "head";
          change({ block: b, head: j });
        });
        cells.append(make("td", {}, button));
      }
      body.append(cells);
    }
    return body;
  }

  function build(place) {
    const choices = make("fieldset", { className: "row" }, make("legend", {}, "Shown is"));
    const inputs = Object.entries(KINDS).map(([name, text]) => {
      const input = make("input", { type: "radio", name: "kind", value: name, id: `kind-${name}` });
      input.addEventListener("change", () => choose(name));
      choices.append(make("label", {}, input, text));
      return input;
    });
    const asker = make("select", { id: "asker" });
    for (let i = 0; i <= vitState.patches; i++) {
      asker.append(make("option", { value: i, textContent: tokenName(i) }));
    }
    asker.addEventListener("change", () => change({ query: Number(asker.value) }));
    const twin = make("input", { type: "checkbox", id: "twin" });
    twin.addEventListener("change", () => change({ twin: twin.checked }));
    choices.append(make("label", {}, twin, "beside it an untrained twin"));
    const maps = make("div", { className: "side-by-side" });
    const scale = make("p", { className: "small" });
    place.append(
      make(
        "p",
        {},
        "How much does a token take from each patch? The veil over a patch says it: blue takes little, yellow much. A patch can be picked in the picture too; pick it again, and cls asks.",
      ),
      make("label", {}, "who asks ", asker),
      choices,
      scale,
      maps,
    );
    vitState.listen(({ shown, twinRun, query }) => {
      inputs.forEach((input) => (input.checked = input.value === kind));
      twin.checked = state.twin;
      asker.value = query;
      const runs = twinRun
        ? [
            [shown, "this model"],
            [twinRun, "its untrained twin"],
          ]
        : [[shown, "this model"]];
      // The runs share one scale: what looks alike is alike.
      const largest = (what, b, j) =>
        Math.max(...runs.map(([run]) => Math.max(...shares(run, what, query, b, j).subarray(1))));
      const all = Array.from({ length: L * h }, (_, i) =>
        largest("head", Math.floor(i / h), i % h),
      );
      const ofHeads = Math.max(...all);
      const most = kind === "head" ? ofHeads : largest(kind, state.block, state.head);
      const title =
        kind === "head"
          ? `head ${state.head} of block ${state.block}`
          : kind === "mean"
            ? `mean of block ${state.block}`
            : "rollout";
      scale.replaceChildren("One scale for all heads: ", key(shading([ofHeads], false)));
      if (kind !== "head")
        scale.append(" and one for the large map: ", key(shading([most], false)));
      if (kind === "rollout")
        scale.append(
          " Rollout follows the attention through all blocks" +
            (state.without.residuals
              ? "; without residuals nothing is carried on beside it."
              : ", each half of it the token itself, which the residual carries on."),
        );
      const held = [...maps.querySelectorAll("button")].indexOf(document.activeElement);
      maps.replaceChildren(
        ...runs.map(([run, name]) =>
          make(
            "div",
            { className: twinRun ? "maps-of" : "maps-of side-by-side" },
            large(run, `${name}, ${title}`, most),
            every(run, `${name}, every head`, ofHeads),
          ),
        ),
      );
      if (held >= 0) maps.querySelectorAll("button")[held]?.focus();
    });
  }

  function choose(name) {
    kind = name;
    change({});
  }

  return { build, shares, choose, chosen: () => kind };
})();
