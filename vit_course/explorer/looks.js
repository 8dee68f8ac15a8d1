"use strict";

/* Every head: what the asking token takes from each patch, a small map for each block and head, all
on one scale; beside them, where it is wanted, those of a model that was never trained.
*/
const vitLooks = (() => {
  const { looks } = vitModel;
  const { make, percent, drawMap, key, shading, step } = vitDrawing;
  const { config, state, patches, change, listen, tokenName } = vitState;
  const { depth: L, num_heads: h } = config;
  const KINDS = { head: "one head", mean: "the block's mean", rollout: "all blocks (rollout)" };
  const PLACES = Array.from({ length: L * h }, (_, i) => [Math.floor(i / h), i % h]);
  const side = Math.max(32, Math.min(72, Math.floor(420 / h)));
  const taken = (run, place) => looks(run, "head", state.query, ...place).subarray(1);

  /* The maps of one model; `draw(run, most)` draws them anew. */
  function maps(caption) {
    const all = PLACES.map(([block, head]) => {
      const onclick = () => change({ block, head, kind: "head", light: "looks" });
      return make("button", { type: "button", className: "map", onclick }, vitRoad.thumb(side));
    });
    const heads = PLACES.slice(0, h).map(([, j]) => make("th", { scope: "col" }, `head ${j}`));
    const body = make("table", { className: "maps" }, make("caption", {}, caption));
    body.append(make("tr", {}, make("td"), ...heads));
    for (let b = 0; b < L; b++) {
      const cells = all.slice(b * h, b * h + h).map((button) => make("td", {}, button));
      body.append(make("tr", {}, make("th", { scope: "row" }, `block ${b}`), ...cells));
    }
    body.addEventListener("keydown", (event) => {
      const by = step(event);
      if (!by) return;
      event.preventDefault();
      const [b, j] = PLACES[all.indexOf(event.target)].map((now, i) => now + by[i]);
      if (b >= 0 && b < L && j >= 0 && j < h) all[b * h + j].focus();
    });
    listen("kind block head", ({ kind, block, head }) =>
      PLACES.forEach(([b, j], i) => {
        const lit = b === block && (kind === "mean" || (kind === "head" && j === head));
        all[i].setAttribute("aria-pressed", String(lit));
        all[i].tabIndex = b === block && j === head ? 0 : -1;
      }),
    );
    const draw = (run, most) =>
      PLACES.forEach(([b, j], i) => {
        const out = Boolean(run.blocks[b].gone || run.blocks[b].heads[j].gone);
        const own = taken(run, PLACES[i]);
        const top = Math.max(...own);
        const what = `most from patch ${own.indexOf(top)}, ${percent(top)}`;
        drawMap(all[i].firstChild, run.pixels, config, own, most, state.query - 1);
        all[i].classList.toggle("gone", out);
        all[i].title = `block ${b}, head ${j}: ${out ? "left out; " : ""}${what}`;
      });
    return { body, draw };
  }

  function build(place) {
    const grids = [maps("this model"), maps("its untrained twin")];
    const twin = make("input", { type: "checkbox" });
    twin.onchange = () => change({ twin: twin.checked });
    listen("twin", () => (twin.checked = state.twin));
    const names = Array.from({ length: patches + 1 }, (_, i) => tokenName(i));
    const asker = vitRoad.chooser("who asks", names, "query");
    const scale = make("p", { className: "small" });
    const beside = make("label", {}, twin, "beside it an untrained twin");
    place.append(
      make("p", {}, "What a token takes from each patch. A click lights the picture at the top."),
      make("div", { className: "row" }, asker, beside),
      vitPicture.choice("kind", KINDS, "Light the large picture by"),
      scale,
      make("div", { className: "side-by-side" }, ...grids.map(({ body }) => body)),
    );
    listen("run query", ({ run }) => {
      const runs = [run.shown, run.twin].filter(Boolean);
      const largest = (one) => PLACES.map((place) => Math.max(...taken(one, place)));
      const most = Math.max(...runs.flatMap(largest));
      scale.replaceChildren("One scale for all: ", key(shading([most], false)));
      grids.forEach(({ body, draw }, i) => {
        body.hidden = !runs[i];
        if (runs[i]) draw(runs[i], most);
      });
    });
  }

  return { build };
})();
