"use strict";

/* The picture: drawn with pointer or keys, moved, picked from the held-out examples or the disk.
What the pointer does is chosen beside it; the same tool works by keys at the cursor.
*/
const vitPicture = (() => {
  const { make, drawPixels, frame } = vitDrawing;
  const { config, state, change, grid, examples, labels, classes } = vitState;
  const TOOLS = {
    pick: "pick a patch",
    draw: "draw",
    erase: "erase",
    move: "move it",
    cover: "cover a patch",
    hide: "hide from cls",
  };
  const MEANS = {
    cover: "A covered patch is black for the model.",
    hide: "cls cannot look at a hidden patch.",
  };
  const side = Math.max(1, Math.floor(288 / Math.max(config.height, config.width)));
  const P = config.patch_size;
  const INK = { draw: 1, erase: -1 };
  const OWN = "a picture of your own";
  const HINT = "Draw as large as the examples (◀ ▶) are.";
  const PEN = 1.15; // a pixel whose middle is so far from the stroke stays as it is
  let tool = "pick";
  let cursor = [Math.floor(config.height / 2), Math.floor(config.width / 2)]; // row, column
  let held = null; // where the pointer went down, and the shift then

  const canvas = make("canvas", {
    id: "picture",
    width: config.width * side,
    height: config.height * side,
    tabIndex: 0,
    role: "application",
  });
  const told = make("p", { id: "told", className: "small", "aria-live": "polite" });

  function isPen() {
    return tool in INK;
  }

  function patchAt([r, c]) {
    return Math.floor(r / P) * grid.cols + Math.floor(c / P);
  }

  /* What the chosen tool does at a pixel (row, column). */
  function act(place) {
    const patch = patchAt(place);
    const centre = place.map((index) => index + 0.5);
    if (isPen()) stroke(centre, centre, INK[tool]);
    else if (tool === "pick") change({ query: state.query === patch + 1 ? 0 : patch + 1 });
    else if (isMarker()) mark(patch, !marked().has(patch));
  }

  function isMarker() {
    return tool === "cover" || tool === "hide";
  }

  /* The patches that the tool has covered, or hidden. */
  function marked() {
    return new Set(tool === "cover" ? state.covered : state.without.hidden);
  }

  /* Cover or hide a patch, or let it be seen again. */
  function mark(patch, on) {
    const set = marked();
    if (on) set.add(patch);
    else set.delete(patch);
    if (tool === "cover") change({ covered: set });
    else change({ without: { ...state.without, hidden: [...set] } });
  }

  /* A stroke between two places (row, column), a pen of a little over a pixel: what the pen covers
  of a pixel becomes white, or black. So the data's digits were made, of finer pictures. A picture
  that was moved is first taken as it stands, so that there is paper under the pen everywhere. */
  function stroke(from, to, value) {
    const base = vitState.pixels(new Set());
    const { height, width } = config;
    base.forEach((old, i) => {
      const centre = [(Math.floor(i / width) % height) + 0.5, (i % width) + 0.5];
      const covered = Math.min(1, Math.max(0, PEN - distance(centre, from, to)));
      base[i] = value > 0 ? Math.max(old, 2 * covered - 1) : Math.min(old, 1 - 2 * covered);
    });
    change({ base, shift: [0, 0], example: -1, caption: OWN });
  }

  /* From a place to a stretch between two others. */
  function distance([r, c], [r1, c1], [r2, c2]) {
    const long = (r2 - r1) ** 2 + (c2 - c1) ** 2;
    const along = long ? ((r - r1) * (r2 - r1) + (c - c1) * (c2 - c1)) / long : 0;
    const share = Math.min(1, Math.max(0, along));
    return Math.hypot(r - r1 - share * (r2 - r1), c - c1 - share * (c2 - c1));
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
    cursor = pixel(place);
    const patch = patchAt(cursor);
    held = { place, shift: state.shift, last: place, on: isMarker() && !marked().has(patch) };
    if (isPen()) stroke(place, place, INK[tool]);
    else if (isMarker()) mark(patch, held.on);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!held) return;
    const place = under(event);
    if (tool === "move") {
      const by = [0, 1].map((axis) =>
        Math.round(held.shift[axis] + place[axis] - held.place[axis]),
      );
      change({ shift: by });
    } else if (isPen()) {
      stroke(held.last, place, INK[tool]);
    }
    held.last = place;
    cursor = pixel(place);
    if (isMarker()) mark(patchAt(cursor), held.on);
  });
  canvas.addEventListener("pointerup", () => {
    if (held && tool === "pick") act(cursor); // not before: a finger may want to scroll the page
    held = null;
  });
  canvas.addEventListener("pointercancel", () => (held = null));

  canvas.addEventListener("keydown", (event) => {
    const arrows = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (event.key in arrows) {
      const [down, right] = arrows[event.key];
      const step = isPen() ? 1 : P;
      if (tool === "move") {
        const shift = [state.shift[0] + down, state.shift[1] + right];
        told.textContent = `Moved by ${shift[0]} down, ${shift[1]} to the right.`;
        change({ shift });
      } else {
        cursor = [
          Math.max(0, Math.min(config.height - 1, cursor[0] + down * step)),
          Math.max(0, Math.min(config.width - 1, cursor[1] + right * step)),
        ];
        told.textContent = `At patch ${patchAt(cursor)}, pixel (${cursor}). Space: ${TOOLS[tool]}.`;
        show();
      }
    } else if (event.key === " " || event.key === "Enter") {
      act(cursor);
    } else return;
    event.preventDefault();
  });
  canvas.addEventListener("focus", () => show());
  canvas.addEventListener("blur", () => show());

  // What stands round it --------------------------------------------------------------------------

  const tools = make("fieldset", { className: "tools" }, make("legend", {}, "The pointer can"));
  for (const [name, text] of Object.entries(TOOLS)) {
    const choice = make("input", { type: "radio", name: "tool", value: name, id: `tool-${name}` });
    choice.checked = name === tool;
    choice.addEventListener("change", () => choose(name));
    tools.append(make("label", {}, choice, text));
  }

  function choose(name) {
    tool = name;
    document.getElementById(`tool-${name}`).checked = true;
    canvas.dataset.tool = name;
    told.textContent = MEANS[name] || "";
    canvas.setAttribute(
      "aria-label",
      `The picture, ${config.height} by ${config.width} pixels. The pointer can ${TOOLS[name]}; ` +
        (name === "move" ? "arrow keys move it." : "arrow keys go to a place, space acts there."),
    );
  }

  function button(text, name, action) {
    const element = make("button", { type: "button", textContent: text, "aria-label": name });
    element.addEventListener("click", action);
    return element;
  }

  const buttons = make("div", { className: "row" });
  const which = make("span", { className: "small" });
  if (examples.length) {
    buttons.append(
      button("◀", "the example before", () => leaf(Math.max(state.example, 0) - 1)),
      button("▶", "the next example", () => leaf(state.example + 1)),
    );
  }
  buttons.append(
    button("Clear", "clear the picture", () => {
      vitState.showPicture(
        state.base.map(() => -1),
        { caption: OWN },
      );
      choose("draw");
      told.textContent = examples.length ? HINT : "";
    }),
  );
  if (config.in_channels === 3) buttons.append(fromDisk());

  /* A picture from the disk, its shorter side made to fit, its middle cut out, as Preprocess does. */
  function fromDisk() {
    const input = make("input", { type: "file", accept: "image/*" });
    input.addEventListener("change", async () => {
      const file = input.files[0];
      if (!file) return;
      try {
        const photo = await createImageBitmap(file);
        const { width, height } = config;
        const small = make("canvas", { width, height });
        const scale = Math.max(width / photo.width, height / photo.height);
        const [w, h] = [photo.width * scale, photo.height * scale];
        const pen = small.getContext("2d");
        pen.imageSmoothingQuality = "high";
        pen.drawImage(photo, (width - w) / 2, (height - h) / 2, w, h);
        const bytes = pen.getImageData(0, 0, width, height).data;
        const base = new Float32Array(3 * width * height);
        for (let i = 0; i < base.length; i++) {
          const channel = Math.floor(i / (width * height)),
            p = i % (width * height);
          base[i] = bytes[4 * p + channel] / 127.5 - 1;
        }
        vitState.showPicture(base, { caption: OWN });
        told.textContent = `This is ${file.name}.`;
      } catch {
        told.textContent = `${file.name} is no picture that this browser reads.`;
      }
    });
    return make("label", { className: "file" }, "A picture of yours ", input);
  }

  function show() {
    drawPixels(canvas, vitState.pixels(), config);
    const pen = canvas.getContext("2d");
    const square = P * side;
    pen.strokeStyle = "rgba(128, 128, 128, 0.5)";
    pen.lineWidth = 1;
    for (let i = 1; i < grid.cols; i++) pen.strokeRect(i * square, -1, 0, canvas.height + 2);
    for (let i = 1; i < grid.rows; i++) pen.strokeRect(-1, i * square, canvas.width + 2, 0);
    const corner = (patch) => [
      (patch % grid.cols) * square,
      Math.floor(patch / grid.cols) * square,
    ];
    if (square >= 40) number(pen, corner);
    for (const patch of state.covered) hatch(pen, ...corner(patch), square, "#999");
    for (const patch of state.without.hidden) hatch(pen, ...corner(patch), square, "#e69f00");
    if (state.query) frame(pen, ...corner(state.query - 1), square, square);
    if (document.activeElement === canvas && canvas.matches(":focus-visible") && tool !== "move") {
      const small = isPen();
      const [x, y] = small ? [cursor[1] * side, cursor[0] * side] : corner(patchAt(cursor));
      pen.strokeStyle = "#d55e00";
      pen.lineWidth = 3;
      pen.strokeRect(x + 1, y + 1, (small ? side : square) - 2, (small ? side : square) - 2);
    }
    const label = labels[state.example];
    const moved = state.shift.some((by) => by !== 0) ? ", moved" : "";
    which.textContent =
      state.example < 0
        ? state.caption + moved
        : `example ${state.example + 1} of ${examples.length}` +
          (label === undefined ? "" : `: ${classes[label]}`) +
          moved;
    if (state.example >= 0 && told.textContent === HINT) told.textContent = "";
  }

  function leaf(number) {
    const seen = state.covered.size || state.without.hidden.length;
    told.textContent = seen ? "All patches are seen again." : "";
    vitState.showExample(number);
  }

  /* Each patch's number in its corner. */
  function number(pen, corner) {
    pen.font = "11px sans-serif";
    pen.textBaseline = "top";
    pen.lineWidth = 2;
    for (let patch = 0; patch < vitState.patches; patch++) {
      const [x, y] = corner(patch);
      pen.strokeStyle = "rgba(0, 0, 0, 0.6)";
      pen.strokeText(patch, x + 4, y + 4);
      pen.fillStyle = "rgba(255, 255, 255, 0.75)";
      pen.fillText(patch, x + 4, y + 4);
    }
  }

  /* Lines across a patch: it is covered, or hidden. */
  function hatch(pen, x, y, size, colour) {
    pen.save();
    pen.beginPath();
    pen.rect(x, y, size, size);
    pen.clip();
    pen.strokeStyle = colour;
    pen.lineWidth = 2;
    for (let i = -size; i < size; i += Math.max(6, size / 8)) {
      pen.beginPath();
      pen.moveTo(x + i, y + size);
      pen.lineTo(x + i + size, y);
      pen.stroke();
    }
    pen.restore();
  }

  function build(place) {
    place.append(canvas, make("div", { className: "row" }, buttons, which), tools, told);
    choose(examples.length ? "pick" : "draw");
    vitState.listen(show);
  }

  return { build, choose, chosen: () => tool };
})();
