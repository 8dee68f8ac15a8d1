"use strict";

/* Which patch asks: a row of a table of attention weights over the picture, where the chosen patch
looks, and a column beside it, who looks at that patch. Both on one scale.
*/
(async () => {
  const { make, drawMap, key, shading } = vitDrawing;
  const { matrix, row } = vitModel;
  const given = JSON.parse(document.getElementById("given").textContent);
  const { height, width, patchSize, cls, names } = given;
  const config = { height, width, in_channels: 1, patch_size: patchSize };
  const rows = height / patchSize,
    cols = width / patchSize,
    n = rows * cols;
  const weights = await table();
  const pixels = await pixelsOf(given.photo);
  let asks = given.start; // a patch, from 0; −1 is cls

  /* What Python's zlib has packed. */
  async function bytes(text) {
    const letters = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    const packed = new Blob([Uint8Array.from(letters, (letter) => letter.charCodeAt(0))]);
    const whole = packed.stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(whole).arrayBuffer();
  }

  /* The weights (N, N), which are stored as shares of each row's largest. */
  async function table() {
    const most = new Float32Array(await bytes(given.most));
    const Steps = given.bits === 16 ? Uint16Array : Uint8Array;
    const steps = new Steps(await bytes(given.weights));
    const N = most.length,
      top = 2 ** given.bits - 1;
    const data = Float32Array.from(steps, (step, i) => (step / top) * most[Math.floor(i / N)]);
    return matrix(N, N, data);
  }

  /* The picture's pixels (1, H, W), from −1 to 1; it is grey. */
  async function pixelsOf(address) {
    const photo = make("img", { src: address });
    await photo.decode();
    const pen = make("canvas", { width, height }).getContext("2d");
    pen.drawImage(photo, 0, 0);
    const { data } = pen.getImageData(0, 0, width, height);
    return Float32Array.from({ length: height * width }, (_, i) => data[4 * i] / 127.5 - 1);
  }

  function named(patch) {
    if (patch < 0) return "cls";
    return patch in names ? `patch ${patch} (${names[patch]})` : `patch ${patch}`;
  }

  const share = (value) => `${(100 * value).toFixed(value < 0.1 ? 1 : 0)}%`;
  const capital = (text) => text[0].toUpperCase() + text.slice(1);
  const total = (values) => values.reduce((sum, value) => sum + value, 0);

  function map(name) {
    const sharp = Math.ceil(400 / Math.max(height, width)); // canvas pixels for one of the picture
    const canvas = make("canvas", {
      className: name,
      width: width * sharp,
      height: height * sharp,
      tabIndex: 0,
      role: "application",
    });
    const title = make("figcaption");
    const words = make("p", { className: `words ${name}`, "aria-live": "polite" });
    canvas.addEventListener("pointermove", (event) => pick(under(event)));
    canvas.addEventListener("pointerdown", (event) => pick(under(event)));
    canvas.addEventListener("keydown", (event) => {
      const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
      if (!(event.key in steps)) return;
      const [down, right] = steps[event.key];
      // From cls the keys go on at the first patch.
      pick(asks < 0 ? [0, 0] : [Math.floor(asks / cols) + down, (asks % cols) + right]);
      event.preventDefault();
    });
    function under(event) {
      const box = canvas.getBoundingClientRect();
      return [
        Math.floor(((event.clientY - box.top) / box.height) * rows),
        Math.floor(((event.clientX - box.left) / box.width) * cols),
      ];
    }
    return { canvas, title, words, figure: make("figure", {}, title, canvas, words) };
  }

  const gives = map("gives"),
    gets = map("gets");
  const button = make("button", { type: "button", textContent: "cls asks", hidden: !cls });
  button.addEventListener("click", () => {
    asks = asks < 0 ? given.start : -1;
    show();
  });

  function pick([r, c]) {
    const next = Math.max(0, Math.min(rows - 1, r)) * cols + Math.max(0, Math.min(cols - 1, c));
    if (next === asks) return;
    asks = next;
    show();
  }

  /* The three largest, in words. */
  function largest(values) {
    const order = values
      .map((_, i) => i)
      .sort((a, b) => values[b] - values[a])
      .slice(0, 3);
    return order.map((i) => `${named(i - cls)} ${share(values[i])}`).join(", ");
  }

  function show() {
    const token = asks + cls;
    const given = Array.from(row(weights, token));
    const got = given.map((_, i) => row(weights, i)[token]);
    const sides = [
      [gives, given, `Where ${named(asks)} looks`, "It looks most at"],
      [gets, got, `Who looks at ${named(asks)}`, "Most looks come from"],
    ];
    const shade = shading([...given.slice(cls), ...got.slice(cls)], false);
    for (const [side, values, title, start] of sides) {
      drawMap(side.canvas, pixels, config, values.slice(cls), shade.far, asks);
      side.title.textContent = title;
      side.words.textContent = `${start} ${largest(values)}.`;
      side.canvas.setAttribute(
        "aria-label",
        `${title}: ${rows} by ${cols} patches. Arrow keys choose the patch that asks.`,
      );
    }
    scale.replaceChildren("0%", key(shade).querySelector("canvas"), share(shade.far));
    sum.textContent =
      `${capital(named(asks))} gives out 100%, as every token does, and gets ` +
      `${share(total(got))} from all ${weights.rows} tokens together.`;
    button.setAttribute("aria-pressed", String(asks < 0));
  }

  const sum = make("p", { className: "sum" });
  const scale = make("span", { className: "key" });
  document.body.append(
    make(
      "div",
      { className: "row small" },
      "Point at a patch, in either picture. One scale:",
      scale,
      button,
    ),
    make("div", { className: "columns maps" }, gives.figure, gets.figure),
    sum,
  );
  show();
  document.documentElement.classList.add("live");
})();
