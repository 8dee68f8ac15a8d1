"use strict";

/* Puts the parts into the page, and starts it with the first example. */
(() => {
  const { config, weights, examples } = vitState;
  const place = (id) => document.getElementById(id);
  const count = Object.values(weights).reduce((sum, { data }) => sum + data.length, 0);
  place("sizes").textContent =
    `${config.depth} blocks · ${config.num_heads} heads · D = ${config.embed_dim} · ` +
    `${vitState.patches} patches of ${config.patch_size}×${config.patch_size} · ` +
    `${count.toLocaleString("en")} weights`;
  const names = vitState.classes.length > 10 ? "" : `: ${vitState.classes.join(", ")}`;
  place("about").textContent =
    (vitState.about || `This model tells ${vitState.classes.length} classes apart${names}.`) +
    " " +
    (vitState.unseen ? `It was not trained on the ${examples.length} examples. ` : "") +
    "Draw, or take a part out: it answers at once.";
  vitPicture.build(place("input"));
  vitParts.buildAnswer(place("output"));
  vitRoad.build(place("road"), place("stage"));
  vitLooks.build(place("looks"));
  vitParts.buildSwitches(place("without"));
  vitParts.buildLens(place("lens"));
  vitTour.build(place("tour"), place("start-tour"));
  if (examples.length) vitState.showExample(0);
  vitState.update();
})();
