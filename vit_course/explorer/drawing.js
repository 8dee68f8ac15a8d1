"use strict";

/* What the page draws with: elements, the course's two colour scales, a table of numbers that can be
asked, maps of patches.

Text that comes from outside is only ever set as text, so a class or file name can hold anything.
*/
const vitDrawing = (() => {
  const { row } = vitModel;

  /* A new element: its properties, and what stands in it. */
  function make(tag, properties = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name.includes("-") || name === "role" || name === "for")
        element.setAttribute(name, value);
      else element[name] = value;
    }
    element.append(...children);
    return element;
  }

  /* Which way an arrow key goes: rows down, columns to the right; null for another key. */
  function step({ key }) {
    const ways = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    return ways[key] || null;
  }

  // Colours ---------------------------------------------------------------------------------------

  // From dark to light for shares and sizes; blue, white, orange for numbers of two signs. Both
  // are told apart without red and green, and by their lightness alone.
  const SHARES = [
    [0, 32, 77],
    [55, 72, 108],
    [124, 123, 120],
    [186, 174, 108],
    [255, 234, 70],
  ];
  const SIGNS = [
    [5, 78, 138],
    [118, 174, 214],
    [247, 247, 247],
    [240, 160, 96],
    [166, 66, 4],
  ];

  /* The colour of a number from 0 to 1 on a scale. */
  function colour(scale, value) {
    const place = Math.max(0, Math.min(1, value)) * (scale.length - 1);
    const low = Math.min(Math.floor(place), scale.length - 2);
    const [from, to] = [scale[low], scale[low + 1]];
    const between = (i) => Math.round(from[i] + (place - low) * (to[i] - from[i]));
    return [between(0), between(1), between(2)];
  }

  /* How numbers become colours: by their sign about 0, or from 0 to the largest. */
  function shading(data, signed = true, most = 0) {
    let far = most;
    if (!most) for (const value of data) if (isFinite(value)) far = Math.max(far, Math.abs(value));
    far = far || 1;
    const scale = signed ? SIGNS : SHARES;
    return {
      far,
      low: signed ? -far : 0,
      scale,
      of: (value) => colour(scale, signed ? (value / far + 1) / 2 : value / far),
    };
  }

  /* A number, as it is written everywhere on the page. */
  function said(value) {
    if (value === -Infinity) return "−∞";
    const size = Math.abs(value);
    const text = size >= 100 ? size.toFixed(0) : size >= 10 ? size.toFixed(1) : size.toFixed(2);
    return (value < 0 && Number(text) !== 0 ? "−" : "") + text;
  }

  function percent(share) {
    return share > 0 && share < 0.005 ? "under 1%" : `${Math.round(100 * share)}%`;
  }

  // A table of numbers ----------------------------------------------------------------------------

  /* A matrix as coloured cells, to be asked by pointer or by keys.

  options: matrix; label; signed; most (the scale's end, where it is shared); paint(i, j): a cell's
  colour, where no scale gives it; rowName(i), colName(j); formula(i, j): how the number came about;
  lit: a row to mark; pick(i, j): what a click does; moved(i, j): what asking does; side, tall: a
  cell's, in pixels; rows, columns: names to stand beside and above; place: [row, column] that is
  asked first, and again when it changes; linked: a list of tables of one shape, asked together.
  `update(options)` of what comes back shows other numbers of the same shape, where it stands.
  */
  function table(options) {
    const { matrix: x, linked = [] } = options;
    const side = options.side || Math.max(3, Math.min(20, Math.floor(600 / x.cols)));
    const tall = options.tall || Math.max(2, Math.min(14, Math.floor(400 / x.rows)));
    const [width, height] = [x.cols * side, x.rows * tall];
    const canvas = make("canvas", { width, height, tabIndex: 0, role: "application" });
    const words = make("p", { className: "formula" });
    const title = make("figcaption");
    const start = ({ place, lit = -1 }) => place || [Math.max(lit, 0)];
    let [i, j = 0] = start(options);
    let now = options;
    let still; // its cells, as they are without what is asked

    function update(next) {
      const [r, c = j] = start(next);
      if (String(start(now)) !== String(start(next))) [i, j] = [r, c];
      now = next;
      const { matrix: x, label, signed, most, paint } = now;
      const shade = shading(x.data, signed, most);
      still = cells(x.rows, x.cols, paint || ((r, c) => shade.of(x.data[r * x.cols + c])), still);
      title.replaceChildren(`${label} (${x.rows}×${x.cols}) `, paint ? "" : key(shade));
      canvas.setAttribute(
        "aria-label",
        `${label}, ${x.rows} by ${x.cols} numbers. Arrow keys ask one after the other.`,
      );
      say();
    }

    function draw() {
      const pen = canvas.getContext("2d");
      enlarge(pen, still, 0, 0, width, height);
      pen.strokeStyle = "#009e73";
      pen.lineWidth = 2;
      if (now.lit >= 0) pen.strokeRect(1, now.lit * tall + 1, width - 2, tall - 2);
      pen.strokeStyle = "#000";
      pen.strokeRect(j * side, i * tall, side, tall);
      pen.strokeStyle = "#fff";
      pen.lineWidth = 1;
      pen.strokeRect(j * side, i * tall, side, tall);
    }

    function say() {
      // Read aloud where keys ask, not at each move of a pointer.
      words.setAttribute("aria-live", document.activeElement === canvas ? "polite" : "off");
      const { rowName = (i) => `row ${i}`, colName = (j) => `column ${j}` } = now;
      words.textContent = now.formula
        ? now.formula(i, j)
        : `${rowName(i)}, ${colName(j)}: ${said(row(now.matrix, i)[j])}`;
      draw();
    }

    function go(r, c) {
      if (r === i && c === j) return;
      [i, j] = [r, c];
      say();
      now.moved?.(i, j);
    }

    function ask(r, c) {
      const place = [Math.max(0, Math.min(x.rows - 1, r)), Math.max(0, Math.min(x.cols - 1, c))];
      for (const one of linked) one(...place);
    }

    const under = (event) => {
      const frame = canvas.getBoundingClientRect();
      return [
        Math.floor(((event.clientY - frame.top) / frame.height) * x.rows),
        Math.floor(((event.clientX - frame.left) / frame.width) * x.cols),
      ];
    };
    canvas.addEventListener("pointermove", (event) => ask(...under(event)));
    canvas.addEventListener("click", (event) => {
      ask(...under(event));
      now.pick?.(i, j);
    });
    canvas.addEventListener("keydown", (event) => {
      const by = step(event);
      if (by) ask(i + by[0], j + by[1]);
      else if (now.pick && (event.key === "Enter" || event.key === " ")) now.pick(i, j);
      else return;
      event.preventDefault();
    });
    linked.push(go);
    update(options);
    const above = titles("columns", options.columns, "width", side);
    const beside = titles("rows", tall >= 12 ? options.rows : [], "height", tall);
    const across = make("div", { className: "sideways" }, above, canvas);
    const named = make("div", { className: "named" }, beside, across);
    return make("figure", { className: "table", update }, title, named, words);
  }

  /* The names of a table's rows or columns, each as large as a cell. */
  function titles(className, names = [], property, size) {
    const narrow = property === "width" && size < 20 ? " narrow" : "";
    const list = make("div", { className: className + narrow, "aria-hidden": "true" });
    for (const name of names) {
      const title = make("span", {}, name);
      title.style[property] = `${size}px`;
      list.append(title);
    }
    return list;
  }

  /* The scale of a table, with its two ends. */
  function key(shade) {
    const canvas = make("canvas", { width: 60, height: 8, "aria-hidden": "true" });
    const pen = canvas.getContext("2d");
    for (let i = 0; i < 60; i++) {
      pen.fillStyle = `rgb(${colour(shade.scale, i / 59)})`;
      pen.fillRect(i, 0, 1, 8);
    }
    return make("span", { className: "key" }, said(shade.low), canvas, said(shade.far));
  }

  // Pictures and maps -----------------------------------------------------------------------------

  /* Cells of the colours `of(i, j)`, [red, green, blue] to 255, as a canvas of a pixel a cell. */
  function cells(rows, cols, of, canvas = make("canvas", { width: cols, height: rows })) {
    const image = new ImageData(cols, rows);
    for (let i = 0, at = 0; i < rows; i++) {
      for (let j = 0; j < cols; j++, at += 4) {
        const colour = of(i, j);
        for (let c = 0; c < 3; c++) image.data[at + c] = colour[c];
        image.data[at + 3] = 255;
      }
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
    return canvas;
  }

  /* Draw a small canvas larger, each of its pixels a rectangle; `places` as drawImage takes them. */
  function enlarge(pen, small, ...places) {
    pen.imageSmoothingEnabled = false;
    pen.drawImage(small, ...places);
  }

  /* Pixels (C, H, W), from −1 to 1, as cells. One channel is grey, three are a colour. */
  function pictureOf(pixels, { height: H, width: W, in_channels: C }) {
    if (!pictures.has(pixels)) {
      const value = (i, j, c) =>
        Math.round((pixels[(C === 3 ? c * H : 0) * W + i * W + j] + 1) * 127.5);
      pictures.set(
        pixels,
        cells(H, W, (i, j) => [0, 1, 2].map((c) => value(i, j, c))),
      );
    }
    return pictures.get(pixels);
  }

  const pictures = new WeakMap(); // of pixels, which nobody changes: many maps are of one picture

  /* Draw pixels on a canvas, as large as it is, each a square. */
  function drawPixels(canvas, pixels, config) {
    const pen = canvas.getContext("2d");
    enlarge(pen, pictureOf(pixels, config), 0, 0, canvas.width, canvas.height);
  }

  /* One number a patch, drawn over the picture: the darker the veil, the less. */
  function drawMap(canvas, pixels, config, shares, most, marked = -1) {
    drawPixels(canvas, pixels, config);
    const pen = canvas.getContext("2d");
    const cols = config.width / config.patch_size,
      rows = config.height / config.patch_size;
    const [w, h] = [canvas.width / cols, canvas.height / rows];
    pen.globalAlpha = 0.7;
    shares.forEach((share, i) => {
      pen.fillStyle = `rgb(${colour(SHARES, share / (most || 1))})`;
      pen.fillRect((i % cols) * w, Math.floor(i / cols) * h, w, h);
    });
    pen.globalAlpha = 1;
    if (marked >= 0) frame(pen, (marked % cols) * w, Math.floor(marked / cols) * h, w, h);
  }

  /* A frame that is seen on every ground: white in black. */
  function frame(pen, x, y, w, h) {
    pen.lineWidth = 4;
    pen.strokeStyle = "#000";
    pen.strokeRect(x + 2, y + 2, w - 4, h - 4);
    pen.lineWidth = 2;
    pen.strokeStyle = "#fff";
    pen.strokeRect(x + 2, y + 2, w - 4, h - 4);
  }

  return {
    ...{ make, colour, shading, said, percent, table, key, step },
    ...{ cells, enlarge, pictureOf, drawPixels, drawMap, frame, SHARES, SIGNS },
  };
})();
