"use strict";

/* Every head: what the asking token takes from each patch, a small map for each block and head, all
on one scale; beside them, where it is wanted, those of a model that was never trained.
*/
const vitLooks = (() => {
  const { looks } = vitModel;
  const { make, percent, drawMap, key, shading, step } = vitDrawing;
  const { config, state, change, listen } = vitState;
  const { depth: L, num_heads: h, height: H, width: W } = config;
  const KINDS = { head: "one head", mean: "the block's mean", rollout: "all blocks (rollout)" };
  const PLACES = Array.from({ length: L * h }, (_, i) => [Math.floor(i / h), i % h]);
  const side = Math.max(32, Math.min(72, Math.floor(420 / h)));

  /* The maps of one model; `draw(run, most)` draws them anew. */
  function maps(name) {
    const rows = Array.from({ length: L }, (_, b) => make("th", { scope: "row" }, `block ${b}`));
    const all = PLACES.map(([block, head]) => {
      const canvas = vitRoad.thumb(W, H, side);
      const button = make("button", { type: "button", className: "map" }, canvas);
      button.addEventListener("click", () => change({ block, head, kind: "head", light: "looks" }));
      return button;
    });
    const body = make("table", { className: "maps" }, make("caption", {}, name), make("tr", {}, make("td"))); // prettier-ignore
    for (let j = 0; j < h; j++) body.lastChild.append(make("th", { scope: "col" }, `head ${j}`));
    rows.forEach((title, b) => {
      const line = all.slice(b * h, b * h + h).map((button) => make("td", {}, button));
      body.append(make("tr", {}, title, ...line));
    });
    body.addEventListener("keydown", (event) => {
      const by = step(event);
      const now = PLACES[all.indexOf(document.activeElement)];
      if (!by || !now) return;
      event.preventDefault();
      const [b, j] = [now[0] + by[0], now[1] + by[1]];
      if (b >= 0 && b < L && j >= 0 && j < h) all[b * h + j].focus();
    });
    listen("kind block head", ({ kind, block, head }) =>
      all.forEach((button, i) => {
        const [b, j] = PLACES[i];
        const lit = b === block && (kind === "mean" || (kind === "head" && j === head));
        button.setAttribute("aria-pressed", String(lit));
        button.tabIndex = b === block && j === head ? 0 : -1;
      }),
    );
    const draw = (run, most) => {
      rows.forEach((title, b) => {
        title.textContent = `block ${b}${run.blocks[b].gone ? ", left out" : ""}`;
      });
      PLACES.forEach(([b, j], i) => {
        const { gone, heads } = run.blocks[b];
        const out = gone || heads[j].gone;
        const own = looks(run, "head", state.query, b, j).subarray(1);
        const top = Math.max(...own);
        drawMap(all[i].firstChild, run.pixels, config, own, most, state.query - 1);
        all[i].classList.toggle("gone", Boolean(out));
        all[i].title = `block ${b}, head ${j}: ${out ? "left out; " : ""}most from patch ${own.indexOf(top)}, ${percent(top)}`; // prettier-ignore
        all[i].setAttribute("aria-label", all[i].title);
      });
    };
    return { body, draw };
  }

  function build(place) {
    const grids = [maps("this model"), maps("its untrained twin")];
    const twin = make("input", { type: "checkbox" });
    const scale = make("p", { className: "small" });
    twin.addEventListener("change", () => change({ twin: twin.checked }));
    listen("twin", () => (twin.checked = state.twin));
    place.append(
      make("p", {}, "What a token takes from each patch, in each head: yellow is much, blue is little. A click lights the large picture by that head."), // prettier-ignore
      make("div", { className: "row" }, vitRoad.asker(), make("label", {}, twin, "beside it an untrained twin")), // prettier-ignore
      vitPicture.choice("kind", KINDS, "Light the large picture by"),
      scale,
      make("div", { className: "side-by-side" }, ...grids.map(({ body }) => body)),
    );
    listen("run query", ({ run, query }) => {
      const runs = [run.shown, run.twin].filter(Boolean);
      const largest = (one) => PLACES.map(([b, j]) => Math.max(...looks(one, "head", query, b, j).subarray(1))); // prettier-ignore
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
