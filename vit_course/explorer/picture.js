"use strict";

/* The large picture: drawn on with pointer or keys, covered, leafed through, dropped from the disk;
lit up where the model looks, or by what matters to its answer.
*/
const vitPicture = (() => {
  const { row, stroke, shrink, looks } = vitModel;
  const { make, drawPixels, frame, percent, step } = vitDrawing;
  const { given, config, state, change, grid, examples, labels } = vitState;
  const { classes, ink, tokenName } = vitState;
  const P = config.patch_size;
  const side = Math.max(1, Math.floor(528 / Math.max(config.height, config.width)));
  const YOURS = ink ? "your drawing" : "your photo";
  const TOOLS = {
    draw: ["Draw", "Draw a digit with the pointer or a finger."],
    erase: ["Erase", "Erase with the pointer."],
    cover: ["Cover", "Click a patch: the model no longer gets what stands there."],
    hide: ["Hide", "Click a patch: cls may not look there; the other tokens still may."],
    pick: ["Ask", "Click a patch: lit is what this patch takes from. Once more: cls."],
  };
  if (!ink) for (const pen of ["draw", "erase"]) delete TOOLS[pen];
  if (ink && classes.some((name) => !/^\d$/.test(name))) TOOLS.draw[1] = "Draw with the pointer.";
  const PENS = ["draw", "erase"];
  const MARKERS = ["cover", "hide"];
  let held = null; // where the pointer went down, and what was so then

  const canvas = make("canvas", {
    id: "picture",
    width: config.width * side,
    height: config.height * side,
    tabIndex: 0,
    role: "application",
  });

  const patchAt = ([r, c]) => Math.floor(r / P) * grid.cols + Math.floor(c / P);

  // What the tools do -----------------------------------------------------------------------------

  /* Whatever the pen draws on becomes a picture of one's own. */
  function draw(from, to) {
    const base = stroke(state.base, from, to, config, state.tool === "erase");
    change({ base, example: -1, caption: YOURS });
  }

  /* Cover or hide a patch, or let it be seen again. */
  function mark(patch, on) {
    const set = marked();
    if (on) set.add(patch);
    else set.delete(patch);
    if (state.tool === "cover") change({ covered: set });
    else change({ without: { ...state.without, hidden: [...set] } });
  }

  const marked = () => new Set(state.tool === "cover" ? state.covered : state.without.hidden);

  /* What the chosen tool does at a pixel, by a click or a key. */
  function act(place) {
    const patch = patchAt(place);
    const middle = place.map((index) => index + 0.5);
    if (PENS.includes(state.tool)) draw(middle, middle);
    else if (state.tool === "pick") change({ query: state.query === patch + 1 ? 0 : patch + 1 });
    else if (MARKERS.includes(state.tool)) mark(patch, !marked().has(patch));
  }

  /* Where the pointer is, in pixels from the top and from the left, with fractions. */
  function under(event) {
    const box = canvas.getBoundingClientRect();
    return [
      ((event.clientY - box.top) / box.height) * config.height,
      ((event.clientX - box.left) / box.width) * config.width,
    ];
  }

  /* The pixel at a place; at the edge, the last one. */
  function pixel([r, c]) {
    const inside = (value, count) => Math.max(0, Math.min(count - 1, Math.floor(value)));
    return [inside(r, config.height), inside(c, config.width)];
  }

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return; // not the first one
    const place = under(event);
    canvas.setPointerCapture(event.pointerId);
    const cursor = pixel(place);
    const on = MARKERS.includes(state.tool) && !marked().has(patchAt(cursor));
    held = { last: place, on };
    change({ cursor });
    if (PENS.includes(state.tool)) draw(place, place);
    else if (MARKERS.includes(state.tool)) mark(patchAt(cursor), on);
  });
  canvas.addEventListener("pointermove", (event) => {
    const places = (event.getCoalescedEvents?.() ?? []).concat(event).map(under);
    const place = places.at(-1);
    const cursor = pixel(place);
    change({ cursor, patch: held && PENS.includes(state.tool) ? -1 : patchAt(cursor) });
    if (!held) return;
    if (PENS.includes(state.tool)) {
      for (const next of places) {
        draw(held.last, next);
        held.last = next;
      }
    } else if (MARKERS.includes(state.tool)) mark(patchAt(cursor), held.on);
  });
  canvas.addEventListener("pointerup", () => {
    if (held && state.tool === "pick") act(state.cursor); // a finger may scroll the page
    held = null;
  });
  canvas.addEventListener("pointercancel", () => (held = null));
  canvas.addEventListener("pointerleave", () => change({ patch: -1 }));
  canvas.addEventListener("blur", () => change({ patch: -1 }));

  canvas.addEventListener("keydown", (event) => {
    const by = step(event);
    if (by) {
      const far = PENS.includes(state.tool) ? 1 : P;
      const cursor = pixel(state.cursor.map((old, i) => old + by[i] * far));
      change({ cursor, patch: patchAt(cursor) });
    } else if (event.key === " " || event.key === "Enter") act(state.cursor);
    else return;
    event.preventDefault();
  });

  // A photo ---------------------------------------------------------------------------------------

  let latest; // a slow file that was chosen before it must not take its place

  /* A file from the disk, prepared as the model learned from photos. */
  async function take(file) {
    if (!file) return;
    latest = file;
    try {
      const photo = await createImageBitmap(file);
      if (file !== latest) return;
      // Beyond some 2,000 pixels the browser's own steps make it smaller first.
      const scale = Math.min(1, 2000 / Math.min(photo.width, photo.height));
      const [width, height] = [photo.width, photo.height].map((long) => Math.round(long * scale));
      const pen = make("canvas", { width, height }).getContext("2d");
      pen.fillStyle = "#fff"; // below what is transparent
      pen.fillRect(0, 0, width, height);
      pen.imageSmoothingQuality = "high";
      pen.drawImage(photo, 0, 0, width, height);
      const bytes = pen.getImageData(0, 0, width, height).data;
      const cut = width * config.height === height * config.width ? "" : ", its middle";
      vitState.show(shrink(bytes, width, height, config), { caption: file.name + cut });
    } catch {
      if (file !== latest) return;
      told.textContent = `${file.name} is no picture that this browser reads.`;
    }
  }

  function photos(place) {
    const input = make("input", { type: "file", accept: "image/*" });
    input.onchange = () => take(input.files[0]);
    document.addEventListener("dragover", (event) => event.preventDefault());
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      take(event.dataTransfer.files[0]);
    });
    document.addEventListener("paste", (event) => take(event.clipboardData.files[0]));
    place.append(make("label", { className: "button" }, "Choose a photo", input));
  }

  // What lights it up -----------------------------------------------------------------------------

  /* A number for each patch, or null: what the asking token takes from it, or by how much the share
  of a class falls when it is covered (of the class pointed at, else of the answer). */
  function light() {
    const { run, matters, name, query, kind, block, head } = state;
    if (!run || vitState.isEmpty()) return null;
    const wanted = name >= 0 ? "matters" : state.light;
    if (wanted === "looks") {
      const all = looks(run.shown, kind, query, block, head).slice(1);
      const least = Math.min(...all);
      return all.map((share) => share - least); // rollout gives every patch something
    }
    if (wanted === "nothing" || !matters) return null;
    const shares = run.shown.probabilities.data;
    const which = name >= 0 ? name : vitMeasures.best(shares);
    return Float32Array.from(
      { length: matters.rows },
      (_, i) => shares[which] - row(matters, i)[which],
    );
  }

  function show() {
    drawPixels(canvas, vitState.pixels(), config);
    const pen = canvas.getContext("2d");
    const square = P * side;
    const corner = (i) => [(i % grid.cols) * square, Math.floor(i / grid.cols) * square];
    const values = light();
    const most = values && Math.max(...values.map(Math.abs));
    values?.forEach((value, i) => {
      const share = most ? value / most : 0;
      pen.fillStyle = `rgba(0, 0, 0, ${0.5 * (1 - Math.abs(share))})`;
      pen.fillRect(...corner(i), square, square);
      pen.fillStyle =
        share < 0 ? `rgba(0, 114, 178, ${-0.6 * share})` : `rgba(255, 214, 0, ${0.4 * share})`;
      pen.fillRect(...corner(i), square, square);
    });
    pen.strokeStyle = "rgba(128, 128, 128, 0.5)";
    pen.lineWidth = 1;
    for (let i = 1; i < grid.cols; i++) pen.strokeRect(i * square, -1, 0, canvas.height + 2);
    for (let i = 1; i < grid.rows; i++) pen.strokeRect(-1, i * square, canvas.width + 2, 0);
    const crossed = (colour) => (patch) => {
      const [x, y] = corner(patch);
      pen.strokeStyle = colour;
      pen.stroke(new Path2D(`M${x} ${y}l${square} ${square}m0 ${-square}l${-square} ${square}`));
    };
    pen.lineWidth = 3;
    state.covered.forEach(crossed("#999"));
    state.without.hidden.forEach(crossed("#e69f00"));
    if (state.query) frame(pen, ...corner(state.query - 1), square, square);
    if (state.patch >= 0) {
      const small = PENS.includes(state.tool);
      const [x, y] = small ? [state.cursor[1] * side, state.cursor[0] * side] : corner(state.patch);
      pen.strokeStyle = "#d55e00";
      pen.lineWidth = 3;
      pen.strokeRect(x + 1, y + 1, (small ? side : square) - 2, (small ? side : square) - 2);
    }
  }

  /* The patch pointed at, in words; else what the light means. */
  function said() {
    const { run, patch, matters, name, query } = state;
    if (vitState.isEmpty()) return TOOLS[state.tool][1];
    const { data } = run.shown.probabilities;
    const best = name >= 0 ? name : vitMeasures.best(data);
    if (patch >= 0) {
      const share = looks(run.shown, "rollout", query)[patch + 1];
      const taken = `Patch ${patch}: ${tokenName(query)} takes ${percent(share)} from it.`;
      if (!matters) return taken;
      const left = percent(row(matters, patch)[best]);
      return `${taken} Without it (blue marks), ${classes[best]} goes from ${percent(data[best])} to ${left}.`;
    }
    if (name >= 0 || state.light === "matters") {
      if (!matters) return "Covering one patch after the other …";
      return `Yellow: without this patch, ${classes[best]} gets less. Blue: it gets more.`;
    }
    if (state.light === "nothing") return TOOLS[state.tool][1];
    const { block, head, kind } = state;
    const ways = { rollout: "all blocks", mean: `block ${block}` };
    const through = ways[kind] ?? `head ${head} of block ${block}`;
    const cls = "cls, one more token, gathers from the patches; the answer is read from it. ";
    const read = query || config.pool === "mean" ? "" : cls;
    return `${read}Lit: what ${tokenName(query)} takes, through ${through}.`;
  }

  // What stands round it --------------------------------------------------------------------------

  /* A few radio buttons for one thing of the state. */
  function choice(name, options, legend) {
    const field = make("fieldset", { className: "choice" }, make("legend", {}, legend));
    for (const [value, text] of Object.entries(options)) {
      const input = make("input", { type: "radio", name, value, id: `${name}-${value}` });
      input.addEventListener("change", () => change({ [name]: value }));
      vitState.listen(name, () => (input.checked = state[name] === value));
      field.append(make("label", {}, input, text));
    }
    return field;
  }

  function button(text, name, action) {
    return make("button", { type: "button", "aria-label": name, onclick: action }, text);
  }

  const told = make("p", { id: "told", className: "small" });

  /* The picture into one place; what lights it up, into another below the answer. */
  function build(place, below) {
    const names = Object.fromEntries(Object.entries(TOOLS).map(([name, [text]]) => [name, text]));
    const row = make("div", { className: "row" });
    const which = make("span", { className: "small" });
    const hurry = make("progress", { max: 1, hidden: true, "aria-label": "covering each patch" });
    if (examples.length) {
      row.append(button("◀", "the example before", () => leaf(-1)));
      row.append(button("▶", "the next example", () => leaf(1)));
    }
    const blank = button("Draw your own", "an empty sheet to draw on", clear);
    if (ink) row.append(blank, button("Save it", "save the picture as a file", save));
    else if (given.photos) photos(row);
    row.append(which);
    const paper = make("div", { id: "paper" }, canvas);
    place.append(choice("tool", names, "With the pointer"), paper, row, told);
    const lights = { looks: "where it looks", matters: "what matters", nothing: "nothing" };
    const back = button("Let cls ask again", "let cls ask again", () => change({ query: 0 }));
    below.append(choice("light", lights, "Light up"), hurry, back);
    vitState.listen("query", ({ query }) => (back.hidden = !query));
    const lit = "run matters query kind block head light patch name tool";
    vitState.listen(`base covered without cursor ${lit}`, show);
    vitState.listen(lit, () => (told.textContent = said()));
    vitState.listen("example caption", () => (which.textContent = caption()));
    vitState.listen("tool", () => {
      canvas.dataset.tool = state.tool;
      const size = `The picture, ${config.height} by ${config.width} pixels.`;
      const keys = "Arrow keys go to a place, space acts there.";
      canvas.setAttribute("aria-label", `${size} ${TOOLS[state.tool][1]} ${keys}`);
    });
    vitState.listen("light matters name run", async () => {
      const wanted = state.light === "matters" || state.name >= 0;
      if (!wanted || state.matters || !hurry.hidden) return;
      hurry.hidden = false;
      await vitState.findMatters((share) => (hurry.value = share));
      hurry.hidden = true;
    });
  }

  /* The picture as a PNG of its own size, dark on white as on paper. */
  function save() {
    const pixels = vitState.pixels().map((value) => -value);
    const small = make("canvas", { width: config.width, height: config.height });
    const href = drawPixels(small, pixels, config).canvas.toDataURL();
    make("a", { download: "drawing.png", href }).click();
  }

  const leaf = (by) => vitState.showExample(Math.max(state.example, by > 0 ? -1 : 0) + by);

  function clear() {
    const empty = state.base.map(() => -1);
    vitState.show(empty, { caption: YOURS, tool: "draw" });
  }

  function caption() {
    if (state.example < 0) return state.caption;
    const name = classes[labels[state.example]];
    return `example ${state.example + 1} of ${examples.length}${name ? `: ${name}` : ""}`;
  }

  return { build, choice, take };
})();
