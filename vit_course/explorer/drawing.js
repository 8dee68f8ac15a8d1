"use strict";

/* What the page draws with: elements, the course's two colour scales, a table of numbers that can
be asked, maps of patches. It knows no model.

Text that comes from outside is only ever set as text, so a class or file name can hold anything.
*/
const vitDrawing = (() => {
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

  /* Tabs in a list; arrow keys go from one to the other. The function given back marks one open. */
  function tabs(list, contents, panel, choose) {
    const all = contents.map((content, i) => {
      const of = { type: "button", role: "tab", "aria-controls": panel.id };
      return make("button", { ...of, onclick: () => choose(i) }, ...[content].flat());
    });
    list.addEventListener("keydown", (event) => {
      const by = step(event);
      if (!by) return;
      event.preventDefault();
      const next = (all.indexOf(event.target) + by[0] + by[1] + all.length) % all.length;
      all[next].focus();
      choose(next);
    });
    list.setAttribute("role", "tablist");
    list.append(...all);
    return (open) =>
      all.forEach((tab, i) => {
        tab.setAttribute("aria-selected", String(i === open));
        tab.tabIndex = i === open ? 0 : -1;
      });
  }

  // Colours ---------------------------------------------------------------------------------------

  // From dark to light for shares and sizes; blue, white, orange for numbers of two signs. Both
  // are told apart without red and green, and by their lightness alone.
  const SHARES = ["#00204d", "#37486c", "#7c7b78", "#baae6c", "#ffea46"].map(parsed);
  const SIGNS = ["#054e8a", "#76aed6", "#f7f7f7", "#f0a060", "#a64204"].map(parsed);

  /* Red, green and blue of a colour as CSS writes it. */
  function parsed(hex) {
    return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  }

  /* The colour of a number from 0 to 1 on a scale. */
  function colour(scale, value) {
    const place = Math.max(0, Math.min(1, value)) * (scale.length - 1);
    const low = Math.min(Math.floor(place), scale.length - 2);
    const [from, to] = [scale[low], scale[low + 1]];
    return from.map((start, i) => Math.round(start + (place - low) * (to[i] - start)));
  }

  /* How numbers become colours: by their sign about 0, or from 0 to the largest. */
  function shading(data, signed = true, most = 0) {
    const sizes = data.map((value) => (isFinite(value) ? Math.abs(value) : 0));
    const far = most || sizes.reduce((a, b) => Math.max(a, b), 0) || 1;
    const scale = signed ? SIGNS : SHARES;
    const of = (value) => colour(scale, signed ? (value / far + 1) / 2 : value / far);
    return { far, low: signed ? -far : 0, scale, of };
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

  options: matrix {rows, cols, data}; label; formula(i, j): how a number came about; signed; most
  (the scale's end, where it is shared); paint(i, j): a cell's colour, where no scale gives it;
  lit: a row to mark; pick(i, j): what a click does; moved(i, j): what asking does; side, tall: a
  cell's, in pixels; rows, columns: names beside and above, where they fit; place: [row, column]
  that is asked first, and again when it changes; linked: a list of tables asked together.
  `update(options)` of what comes back shows other numbers of the same shape, where it stands.
  */
  function table(options) {
    const { rows, cols } = options.matrix;
    const { linked = [] } = options;
    const side = options.side || Math.max(3, Math.min(20, Math.floor(600 / cols)));
    const tall = options.tall || Math.max(2, Math.min(14, Math.floor(400 / rows)));
    const [width, height] = [cols * side, rows * tall];
    const canvas = make("canvas", { width, height, tabIndex: 0, role: "application" });
    const words = make("p", { className: "formula" });
    const title = make("figcaption");
    let now = {}; // the options of what it shows
    let asked = [0, 0];
    let still; // its cells, as they are without what is asked

    function update(next) {
      const start = ({ place, lit = -1 }) => place || [Math.max(lit, 0)];
      const [i, j = asked[1]] = start(next);
      if (String(start(now)) !== String(start(next))) asked = [i, j];
      now = next;
      const { matrix, label, signed, most, paint } = now;
      const shade = shading(matrix.data, signed, most);
      still = cells(rows, cols, paint || ((i, j) => shade.of(matrix.data[i * cols + j])), still);
      title.replaceChildren(`${label} (${rows}×${cols}) `, paint ? "" : key(shade));
      const how = "Arrow keys ask one after the other.";
      canvas.setAttribute("aria-label", `${label}, ${rows} by ${cols} numbers. ${how}`);
      say();
    }

    function say() {
      // Read aloud where keys ask, not at each move of a pointer.
      words.setAttribute("aria-live", document.activeElement === canvas ? "polite" : "off");
      words.textContent = now.formula(...asked);
      const cell = [asked[1] * side, asked[0] * tall, side, tall];
      const pen = enlarge(still, canvas);
      if (now.lit >= 0) outline(pen, "#009e73", 2, 1, now.lit * tall + 1, width - 2, tall - 2);
      outline(pen, "#000", 2, ...cell);
      outline(pen, "#fff", 1, ...cell);
    }

    function ask(...place) {
      const [i, j] = [rows, cols].map((many, k) => Math.max(0, Math.min(many - 1, place[k])));
      for (const go of linked) go(i, j);
    }

    linked.push((i, j) => {
      if (i === asked[0] && j === asked[1]) return;
      asked = [i, j];
      say();
      now.moved?.(i, j);
    });
    const point = (event) => {
      const box = canvas.getBoundingClientRect();
      const [down, right] = [event.clientY - box.top, event.clientX - box.left];
      ask(Math.floor((down / box.height) * rows), Math.floor((right / box.width) * cols));
    };
    canvas.addEventListener("pointermove", point);
    canvas.addEventListener("click", (event) => {
      point(event);
      now.pick?.(...asked);
    });
    canvas.addEventListener("keydown", (event) => {
      const by = step(event);
      if (by) ask(asked[0] + by[0], asked[1] + by[1]);
      else if (now.pick && (event.key === "Enter" || event.key === " ")) now.pick(...asked);
      else return;
      event.preventDefault();
    });
    update(options);
    const above = titles("columns", side < 13 ? [] : options.columns, "width", side);
    const beside = titles("rows", tall < 12 ? [] : options.rows, "height", tall);
    const across = make("div", { className: "sideways" }, above, canvas);
    const named = make("div", { className: "named" }, beside, across);
    return make("figure", { className: "table", update }, title, named, words);
  }

  /* The names of a table's rows or columns, each as large as a cell. */
  function titles(className, names = [], property, size) {
    const list = make("div", { className, "aria-hidden": "true" });
    list.append(...names.map((name) => make("span", {}, name)));
    for (const title of list.children) title.style[property] = `${size}px`;
    return list;
  }

  /* The scale of a table, with its two ends. */
  function key(shade) {
    const canvas = cells(8, 60, (_, j) => colour(shade.scale, j / 59));
    canvas.setAttribute("aria-hidden", "true");
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

  /* Fill a canvas with a small one, each of its pixels a rectangle; the pen to go on with. */
  function enlarge(small, canvas) {
    const pen = canvas.getContext("2d");
    pen.imageSmoothingEnabled = false;
    pen.drawImage(small, 0, 0, canvas.width, canvas.height);
    return pen;
  }

  const pictures = new WeakMap(); // of pixels, which nobody changes: many maps are of one picture

  /* Fill a canvas with pixels (C, H, W), from −1 to 1. Three channels are a colour; of others the
  first is grey. */
  function drawPixels(canvas, pixels, { height, width, in_channels }) {
    const apart = in_channels === 3 ? height * width : 0; // from one colour to the next
    const byte = (value) => Math.round((value + 1) * 127.5);
    const of = (i, j) => [0, 1, 2].map((c) => byte(pixels[c * apart + i * width + j]));
    if (!pictures.has(pixels)) pictures.set(pixels, cells(height, width, of));
    return enlarge(pictures.get(pixels), canvas);
  }

  /* One number a patch, drawn over the picture: the darker the veil, the less. */
  function drawMap(canvas, pixels, config, shares, most, marked = -1) {
    const pen = drawPixels(canvas, pixels, config);
    const cols = config.width / config.patch_size;
    const rows = config.height / config.patch_size;
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
    outline(pen, "#000", 4, x + 2, y + 2, w - 4, h - 4);
    outline(pen, "#fff", 2, x + 2, y + 2, w - 4, h - 4);
  }

  function outline(pen, colour, thick, ...box) {
    pen.strokeStyle = colour;
    pen.lineWidth = thick;
    pen.strokeRect(...box);
  }

  return {
    ...{ make, step, tabs, shading, said, percent, table, key },
    ...{ cells, enlarge, drawPixels, drawMap, frame },
  };
})();
