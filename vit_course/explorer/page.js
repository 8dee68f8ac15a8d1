"use strict";

/* Puts the parts into the page, and starts it with the first example. */
(() => {
  const { given, config, weights, classes, examples, patches } = vitState;
  const place = (id) => document.getElementById(id);
  const count = Object.values(weights).reduce((sum, { data }) => sum + data.length, 0);
  const { depth, num_heads, embed_dim, patch_size: P } = config;
  place("title").textContent = given.title;
  place("sizes").textContent =
    `${depth} blocks · ${num_heads} heads · D = ${embed_dim} · ${patches} patches of ${P}×${P} · ` +
    `${count.toLocaleString("en")} weights`;
  place("about").textContent = [
    given.about ||
      `This model tells apart: ${classes.slice(0, 10).join(", ")}${classes[10] ? " …" : ""}.`,
    `It cuts the picture into ${patches} patches, looks from one to another, and answers.`,
    given.measured,
    `Whatever it sees, it names one of its ${classes.length} classes.`,
    given.unseen && !given.measured ? "It was not trained on the examples." : "",
  ].join(" ");
  vitAnswer.build(place("output"));
  vitPicture.build(place("input"), place("output"));
  vitRoad.build(place("road"), place("stage"));
  vitLooks.build(place("looks"));
  vitParts.buildSwitches(place("without"));
  vitParts.buildLens(place("lens"));
  vitTour.build(place("tour"));
  if (examples.length) vitState.showExample(0);
  else vitState.change({ caption: "nothing yet" });
})();
