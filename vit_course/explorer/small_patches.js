"use strict";

/* Patch sizes over a picture: its grid, the numbers that a size makes, and the patch at the point
where the reader points, enlarged. The point stays when the size changes.
*/
(async () => {
  const { make, frame } = vitDrawing;
  const given = JSON.parse(document.getElementById("given").textContent);
  const { height, width, channels, sizes } = given;
  const photo = make("img", { src: given.photo });
  await photo.decode();

  const sharp = Math.ceil(400 / Math.max(height, width)); // canvas pixels for one of the picture
  let [row, col] = given.point; // the pixel that is pointed at
  let size = sizes.includes(16) ? 16 : sizes[0];

  const canvas = make("canvas", {
    width: width * sharp,
    height: height * sharp,
    tabIndex: 0,
    role: "application",
  });
  const zoom = make("canvas", { className: "zoom", width: 240, height: 240, role: "img" });
  const words = make("p", { className: "words", "aria-live": "polite" });
  const sums = make("tbody");

  const choice = make("fieldset", {}, make("legend", {}, "Side of a patch, P, in pixels"));
  for (const side of sizes) {
    const radio = make("input", { type: "radio", name: "size", value: side });
    radio.checked = side === size;
    radio.addEventListener("change", () => {
      size = side;
      show();
    });
    choice.append(make("label", {}, radio, String(side)));
  }

  const written = (number) => number.toLocaleString("en");

  function show() {
    const rows = height / size,
      cols = width / size;
    const n = rows * cols,
      numbers = size * size * channels;
    const r = Math.floor(row / size),
      c = Math.floor(col / size);
    draw(canvas.getContext("2d"), r, c);
    const pen = zoom.getContext("2d");
    pen.imageSmoothingEnabled = false;
    pen.drawImage(photo, c * size, r * size, size, size, 0, 0, zoom.width, zoom.height);
    sums.replaceChildren(
      line("n", "patches", `${rows} · ${cols}`, n),
      line("numbers", "numbers in a patch", `${size} · ${size} · ${channels}`, numbers),
      line("all", "numbers in all", `${written(n)} · ${written(numbers)}`, n * numbers),
      line("weights", "weights of one table", `(${written(n)} + 1)²`, (n + 1) ** 2),
    );
    words.textContent =
      `P = ${size}: ${written(n)} patches. This is patch ${r * cols + c}, row ${r}, column ${c}, ` +
      "counted from 0.";
    zoom.setAttribute("aria-label", `patch ${r * cols + c}, enlarged`);
    canvas.setAttribute(
      "aria-label",
      `The picture, cut into ${rows} by ${cols} patches. Arrow keys go from patch to patch.`,
    );
  }

  function line(name, what, how, value) {
    const number = make("td", { className: "number", "data-name": name }, written(value));
    const of = make("td", { className: "how" }, how);
    return make("tr", {}, make("th", { scope: "row" }, what), of, number);
  }

  function draw(pen, r, c) {
    pen.imageSmoothingEnabled = false;
    pen.drawImage(photo, 0, 0, canvas.width, canvas.height);
    const side = size * sharp;
    // A line is light beside dark, so that it is seen on every ground.
    const pair = [
      ["rgba(0, 0, 0, 0.4)", 0.5],
      ["rgba(255, 255, 255, 0.9)", -0.5],
    ];
    for (const [colour, away] of pair) {
      pen.strokeStyle = colour;
      pen.lineWidth = 1;
      pen.beginPath();
      for (let x = side; x < canvas.width; x += side) {
        pen.moveTo(x + away, 0);
        pen.lineTo(x + away, canvas.height);
      }
      for (let y = side; y < canvas.height; y += side) {
        pen.moveTo(0, y + away);
        pen.lineTo(canvas.width, y + away);
      }
      pen.stroke();
    }
    frame(pen, c * side - 3, r * side - 3, side + 6, side + 6);
  }

  function point(toRow, toCol) {
    row = Math.max(0, Math.min(height - 1, toRow));
    col = Math.max(0, Math.min(width - 1, toCol));
    show();
  }

  function follow(event) {
    const box = canvas.getBoundingClientRect();
    point(
      Math.floor(((event.clientY - box.top) / box.height) * height),
      Math.floor(((event.clientX - box.left) / box.width) * width),
    );
  }

  canvas.addEventListener("pointermove", follow);
  canvas.addEventListener("pointerdown", follow);
  canvas.addEventListener("keydown", (event) => {
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (!(event.key in steps)) return;
    const [down, right] = steps[event.key];
    point(row + down * size, col + right * size);
    event.preventDefault();
  });

  document.body.append(
    make(
      "div",
      { className: "columns photo" },
      make("figure", {}, make("figcaption", {}, "Point at a patch"), canvas),
      make(
        "div",
        {},
        choice,
        make("table", { className: "sums" }, sums),
        make(
          "p",
          { className: "small" },
          "The table is lesson 04's. The one token more is cls, of lesson 02.",
        ),
        make("div", { className: "patch" }, zoom, words),
      ),
    ),
  );
  show();
  document.documentElement.classList.add("live");
})();
