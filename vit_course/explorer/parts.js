"use strict";

/* Take it out, and which block decides: the answer before and after, beside each other. */
const vitParts = (() => {
  const { read, matrix } = vitModel;
  const { make, bars, firstTen, percent, table } = vitDrawing;
  const { config, weights, classes, labels, examples, state, change, nothingOut } = vitState;
  const { depth: L, num_heads: h } = config;

  // Take it out -----------------------------------------------------------------------------------

  const SWITCHES = {
    positions: "the positions",
    scale: "the division by √d",
    residuals: "the residuals (a branch replaces the stream)",
  };

  /* A box to tick that stands for something in `without`. */
  function tick(label, isOut, toggle) {
    const box = make("input", { type: "checkbox", "aria-label": label });
    box.addEventListener("change", () =>
      change({ without: { ...state.without, ...toggle(box.checked) } }),
    );
    vitState.listen(() => (box.checked = isOut(state.without)));
    return box;
  }

  /* The same for an item of one of its lists. */
  function tickItem(label, list, item) {
    const same = (other) => JSON.stringify(other) === JSON.stringify(item);
    return tick(
      label,
      (without) => without[list].some(same),
      (out) => {
        const rest = state.without[list].filter((other) => !same(other));
        return { [list]: out ? [...rest, item] : rest };
      },
    );
  }

  /* A box with its words for each of SWITCHES. */
  function switches() {
    const labels = {};
    for (const [name, text] of Object.entries(SWITCHES)) {
      const box = tick(
        `without ${text}`,
        (without) => without[name],
        (out) => ({ [name]: out }),
      );
      labels[name] = make("label", {}, box, text);
    }
    return labels;
  }

  function buildSwitches(place) {
    const large = make("div", { className: "row" });
    for (const [name, label] of Object.entries(switches())) {
      label.firstChild.id = `without-${name}`;
      large.append(label);
    }
    large.append(
      make("label", {}, tickItem("without the last norm", "norms", "norm"), "the last norm"),
    );
    const small = make("table", { className: "ticks" }, make("caption", {}, "and in each block"));
    const head = make("tr", {}, make("td", {}));
    const columns = [
      "all of it",
      "norm1",
      "norm2",
      ...Array.from({ length: h }, (_, j) => `head ${j}`),
    ];
    columns.forEach((name) => head.append(make("th", { scope: "col" }, name)));
    small.append(head);
    for (let b = 0; b < L; b++) {
      const line = make("tr", {}, make("th", { scope: "row" }, `block ${b}`));
      const items = [
        ["blocks", b],
        ["norms", `blocks.${b}.norm1`],
        ["norms", `blocks.${b}.norm2`],
      ];
      for (let j = 0; j < h; j++) items.push(["heads", [b, j]]);
      items.forEach(([list, item], c) =>
        line.append(make("td", {}, tickItem(`without block ${b}, ${columns[c]}`, list, item))),
      );
      small.append(line);
    }
    const back = make("button", { type: "button", textContent: "Put all back" });
    back.addEventListener("click", () => change({ without: nothingOut(), covered: new Set() }));
    const ask = make("button", { type: "button", textContent: "Try it on all examples" });
    const found = make("p", { "aria-live": "polite", id: "found" });
    ask.hidden = !labels.length;
    let asked = {}; // what was out when it was asked
    const changed = ({ without, covered }) =>
      without !== state.without || covered !== state.covered;
    ask.addEventListener("click", async () => {
      const { without, covered } = state;
      const out = vitState.anyOut() || covered.size > 0;
      asked = { without, covered };
      found.textContent = "It reads …";
      const before = await vitState.countRight();
      const after = await vitState.countRight(without, covered);
      if (changed({ without, covered })) return; // meanwhile
      found.textContent =
        `Of ${examples.length} held-out pictures it reads ${before} rightly when whole, and ${after} ` +
        (out ? "with this out or covered." : "again: nothing is out.");
    });
    const again = make("p", {}); // on a phone the answer is far above
    vitState.listen(() => {
      if (changed(asked)) found.textContent = "";
      again.textContent = state.out ? document.getElementById("answer").textContent : "";
    });
    place.append(
      make(
        "p",
        {},
        "Tick what the model shall do without. In the picture you can also hide patches from cls, or cover them.",
      ),
      large,
      make("div", { className: "sideways" }, small),
      again,
      make("div", { className: "row" }, back, ask),
      found,
    );
  }

  /* The answer: bars of the whole model, and beside them of what is left. */
  function buildAnswer(place) {
    const words = make("p", { id: "answer", "aria-live": "polite" });
    const both = make("div");
    place.append(words, both);
    vitState.listen(({ whole, shown, out, example }) => {
      const right = labels[example];
      const order = firstTen(Array.from(whole.probabilities.data));
      const say = ({ probabilities: { data } }) =>
        `${classes[vitState.best(data)]} (${percent(Math.max(...data))})`;
      words.textContent = out
        ? `It says ${say(shown)}; with nothing out or covered, ${say(whole)}.`
        : `It says ${say(whole)}.`;
      const readings = out ? { whole, without: shown } : { probability: whole };
      both.replaceChildren(bars(readings, classes, { right, shown: order }));
    });
  }

  // Which block decides ---------------------------------------------------------------------------

  /* What the head says of the stream at the start and after each block: the logit lens. */
  function lens(run) {
    return [run.start, ...run.blocks.map(({ output }) => output)].map((x) =>
      read(x, weights, config, state.without),
    );
  }

  function buildLens(place) {
    const out = make("div", { className: "side-by-side" });
    place.append(
      make(
        "p",
        {},
        "The head reads the last block's stream. Let it read the stream before: after which block is the answer there?",
      ),
      out,
    );
    vitState.listen(({ shown, whole }) => {
      const readings = lens(shown);
      const order = firstTen(Array.from(whole.probabilities.data));
      const x = matrix(L + 1, order.length);
      readings.forEach(({ probabilities }, i) =>
        order.forEach((k, j) => (x.data[i * order.length + j] = probabilities.data[k])),
      );
      const rowName = (i) => (i ? `after block ${i - 1}` : "before block 0");
      const room = Math.min(520, place.clientWidth - 110); // beside the names of its rows
      const side = Math.max(12, Math.min(44, Math.floor(room / order.length)));
      out.replaceChildren(
        table({
          matrix: x,
          label: "probabilities",
          signed: false,
          most: 1,
          side,
          tall: 26,
          rowName,
          place: [L, 0],
          columns: order.map((k) => classes[k]),
          rows: readings.map((_, i) => rowName(i)),
          formula: (i, j) =>
            `${rowName(i)}, class ${classes[order[j]]}: ${percent(x.data[i * order.length + j])}`,
        }),
        make(
          "ol",
          { className: "lens", "aria-label": "the answer after each block" },
          ...readings.map(({ probabilities: { data } }, i) =>
            make(
              "li",
              {},
              `${rowName(i)}: ${classes[vitState.best(data)]}, ${percent(Math.max(...data))}`,
            ),
          ),
        ),
      );
    });
  }

  return { switches, buildSwitches, buildAnswer, buildLens, lens };
})();
