"use strict";

/* The page's own scripts, without a page: what they hand to each other. */
const { readFileSync } = require("node:fs");
const { join } = require("node:path");
const { compileFunction } = require("node:vm");

const FOLDER = join(__dirname, "..", "..", "vit_course", "explorer");

/* model.js and measures.js; with what a page was `given`, state.js too, which reads the weights.
What the scripts take from a browser stands in `more`. */
function load(given, more = {}) {
  const names = given ? ["model", "measures", "state"] : ["model", "measures"];
  const source = names.map((name) => readFileSync(join(FOLDER, `${name}.js`), "utf8")).join("\n");
  const parts = names.map((name) => `vit${name[0].toUpperCase()}${name.slice(1)}`);
  const page = {
    document: { getElementById: () => ({ textContent: JSON.stringify(given) }) },
    requestAnimationFrame: () => 1,
    ...more,
  };
  const made = compileFunction(`${source}\nreturn { ${parts} };`, Object.keys(page));
  return made(...Object.values(page));
}

module.exports = { load };
