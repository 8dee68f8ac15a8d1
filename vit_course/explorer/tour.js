"use strict";

/* Ten questions on the way of the lessons. Each is a prediction first; then the page measures, on
this model and its pictures, and says what came out; then there is something to try. No answer is
written down here: which one is right follows from what was measured.
*/
const vitTour = (() => {
  const { rollout, row } = vitModel;
  const { make, percent } = vitDrawing;
  const { config, classes, labels, examples, patches, state, change, nothingOut } = vitState;
  const { depth: L, num_heads: h, embed_dim: D, in_channels: C, patch_size: P } = config;
  const d = D / h,
    count = examples.length;
  const out = (changes) => ({ ...nothingOut(), ...changes });

  // How much of what it read is left: the answers to "how many does it still read?".
  const LEFT = [
    "more than 8 of 10 of them",
    "between 3 and 8 of 10 of them",
    "fewer than 3 of 10 of them",
  ];
  const left = ({ before, after }) => (after > 0.8 * before ? 0 : after >= 0.3 * before ? 1 : 2);

  async function against(without) {
    return { before: await vitState.countRight(), after: await vitState.countRight(without) };
  }

  function mean(values) {
    return values.reduce((sum, value) => sum + value, 0) / values.length;
  }

  /* The largest weight that cls gives, as a mean over pictures, blocks and heads. */
  function sharpest(runs) {
    const largest = ({ weights }) => Math.max(...row(weights, 0));
    return mean(runs.flatMap(({ blocks }) => blocks.flatMap(({ heads }) => heads.map(largest))));
  }

  /* How bright each patch of a picture is. */
  function brightness(pixels) {
    const x = vitModel.patchify(pixels, config);
    return Array.from({ length: x.rows }, (_, i) => mean(Array.from(row(x, i))));
  }

  /* The picture with its brightest and its darkest patch in each other's places. */
  function swapped(pixels) {
    const light = brightness(pixels);
    const a = vitState.best(light),
      b = light.indexOf(Math.min(...light));
    const cols = config.width / P,
      size = config.height * config.width;
    const y = pixels.slice();
    const at = (patch, c, p) =>
      c * size +
      (Math.floor(patch / cols) * P + Math.floor(p / P)) * config.width +
      (patch % cols) * P +
      (p % P);
    for (let c = 0; c < C; c++) {
      for (let p = 0; p < P * P; p++) {
        y[at(a, c, p)] = pixels[at(b, c, p)];
        y[at(b, c, p)] = pixels[at(a, c, p)];
      }
    }
    return y;
  }

  function furthest(a, b) {
    return Math.max(
      ...a.probabilities.data.map((share, i) => Math.abs(share - b.probabilities.data[i])),
    );
  }

  /* A step: its lesson; the question and its answers; `begin`, what the page shows meanwhile, and
  `closed`, the part of it that would give the answer away; `measure`; `right`, which answer the
  measured numbers make right; what they say; what to try, and `then`, how the page stands for that.
  */
  const STEPS = [
    {
      lesson: "01",
      name: "A patch becomes a token",
      question: `The picture is cut into ${patches} patches of ${P}×${P} pixels. How many numbers does the model make of each?`,
      answers: [
        "1: how bright it is",
        `${P * P * C}: one for each number of the patch`,
        `${D}: one for each template`,
      ],
      begin: { stage: "photo" },
      closed: "road",
      measure: async () => vitModel.vit(examples[0], vitState.weights, config).embedded.cols,
      right: (numbers) => (numbers === D ? 2 : 1),
      reveal: (numbers) =>
        `A template is as large as a patch. Number times number, all added up, and a bias: that is one of the ${numbers}.`,
      then: () => ({ stage: "patches" }),
      task: "Click numbers in the table of tokens. Patch and template stand below it: where both have the same sign, the sum grows.",
    },
    {
      lesson: "02",
      name: "Without positions",
      question: `Take the positions away. Of the pictures that it reads, how many does it still read?`,
      answers: LEFT,
      begin: { stage: "cls + positions" },
      measure: () => against({ positions: true }),
      right: left,
      reveal: ({ before, after }) =>
        `It reads ${after} of ${count}, where it read ${before}. It sees which strokes there are, and no longer where.`,
      task: "The positions are out now. Leaf through the examples with ▶: which class does it now take for which?",
      then: () => ({ without: out({ positions: true }) }),
    },
    {
      lesson: "02",
      name: "A bag of patches",
      question:
        "Still without positions: the brightest patch of the picture and the darkest change places. How much does the answer change?",
      answers: ["not at all", "by a few hundredths", "it becomes another one"],
      begin: { stage: "cls + positions", without: out({ positions: true }) },
      measure: async () => {
        const pictures = examples.map(swapped);
        const move = async (without) => {
          const [a, b] = [
            await vitState.readAll(without),
            await vitState.readAll(without, vitState.weights, pictures),
          ];
          return a.map((run, i) => furthest(run, b[i]));
        };
        const [blind, seeing] = [await move({ positions: true }), await move({})];
        const example = vitState.best(seeing);
        const [before] = await vitState.readAll({}, vitState.weights, [examples[example]]);
        return {
          without: mean(blind),
          withThem: mean(seeing),
          example,
          said: classes[vitState.best(before.probabilities.data)],
        };
      },
      right: ({ without }) => (without < 1e-4 ? 0 : without < 0.1 ? 1 : 2),
      reveal: ({ without, withThem }) =>
        `The largest change of a probability is ${without.toFixed(3)} on average over all pictures; with positions it is ${withThem.toFixed(3)}. Attention is a sum over tokens, and a sum has no order.`,
      task: ({ example, said }) =>
        `In example ${example + 1} the two have changed places now, and the positions are out. Before the change, and with positions, the model says ${said}. Put the positions back: what does it say of the changed picture?`,
      then: ({ example }) => ({
        base: swapped(examples[example]),
        example: -1,
        caption: `example ${example + 1}: ${classes[labels[example]]}, two patches changed`,
        without: out({ positions: true }),
      }),
    },
    {
      lesson: "03",
      name: "Heads",
      question: `Block ${L - 1} has ${h} heads. Does cls look most at the same patch in all of them, in this picture?`,
      answers: ["yes, in all", "in some of them", "no, in each at another"],
      begin: { stage: "QKV heads", block: L - 1, head: 0 },
      closed: "looks",
      measure: async () => {
        const { heads } = vitModel.vit(examples[0], vitState.weights, config).blocks[L - 1];
        return heads.map(({ weights }) => vitState.best(row(weights, 0).subarray(1)));
      },
      right: (tops) => (new Set(tops).size === 1 ? 0 : new Set(tops).size < tops.length ? 1 : 2),
      reveal: (tops) =>
        `From head 0 to head ${h - 1} these are patches ${tops.join(", ")}. Each head has queries and keys of its own, so each may look elsewhere.`,
      task: "Under “Where it looks”, go through the heads of every block. In which one does cls take most from itself? The line below the large map says how much.",
    },
    {
      lesson: "04",
      name: "The square root of d",
      question: `Scores are divided by √${d}. Leave that out: what becomes of the largest of the attention weights that cls gives to the tokens?`,
      answers: ["it grows", "it stays as it is", "it shrinks"],
      begin: { stage: "attention" },
      measure: async () => {
        const [a, b] = [await vitState.readAll(), await vitState.readAll({ scale: true })];
        return { before: sharpest(a), after: sharpest(b), right: vitState.right(b) };
      },
      right: ({ before, after }) => (after > 1.02 * before ? 0 : after > 0.98 * before ? 1 : 2),
      reveal: ({ before, after, right }) =>
        `Over all pictures, blocks and heads its mean goes from ${percent(before)} to ${percent(after)}: scores that are further apart make a softmax sharper. It was trained with the division; without it, it reads ${right} of ${count}.`,
      task: "√d is out now. Compare the scores with the weights in the tables of “attention”, with √d and without.",
      then: () => ({ without: out({ scale: true }), stage: "attention" }),
    },
    {
      lesson: "05",
      name: "Residuals",
      question:
        "Attention and MLP are added to the stream. Let each take the stream's place instead. Of the pictures that it reads, how many does it still read?",
      answers: LEFT,
      begin: { stage: "MLP" },
      measure: () => against({ residuals: true }),
      right: left,
      reveal: ({ before, after }) =>
        `It reads ${after} of ${count}, where it read ${before}. A branch was trained to add to what is there, not to stand for it.`,
      task: "The residuals are out. The last table of “MLP” has each token's length: what is left of it, and what is striking about the rows? Put the residuals back and compare.",
      then: () => ({ without: out({ residuals: true }), stage: "MLP" }),
    },
    {
      lesson: "05",
      name: "Without a block",
      question: "Leave out one block, the others stay. Which one is missed least?",
      answers: L > 2 ? ["the first", "one between", "the last"] : ["the first", "the last"],
      begin: { stage: "MLP" },
      measure: async () => {
        const counts = [];
        for (let b = 0; b < L; b++) counts.push(await vitState.countRight({ blocks: [b] }));
        // In the block that is missed most: the picture to which a single head matters most.
        const block = counts.indexOf(Math.min(...counts));
        const whole = await vitState.readAll();
        const changes = new Array(count).fill(0);
        for (let j = 0; j < h; j++) {
          const runs = await vitState.readAll({ heads: [[block, j]] });
          runs.forEach((run, i) => (changes[i] = Math.max(changes[i], furthest(run, whole[i]))));
        }
        return { counts, block, example: vitState.best(changes) };
      },
      right: ({ counts }) => {
        const least = vitState.best(counts);
        return least === 0 ? 0 : least < L - 1 ? 1 : L > 2 ? 2 : 1;
      },
      reveal: ({ counts }) => {
        const [first, second] = [...counts].sort((a, b) => b - a);
        return (
          `Of ${count} it reads ${counts.map((n, b) => `${n} without block ${b}`).join(", ")}. The stream goes on past a block that is missing; what it would have added is not there.` +
          (first - second < 2 ? " One picture more or less may be chance." : "")
        );
      },
      task: ({ block }) =>
        `This is the picture in which a single head of block ${block} matters most. Under “Take it out”, leave out one of its heads after the other: which is it?`,
      then: ({ example }) => ({ base: examples[example].slice(), example }),
    },
    {
      lesson: "06",
      name: "Which block decides",
      question:
        "Let the head read the stream after every block. From where on does it read at least half of the pictures?",
      answers: [
        "from the first half of the blocks on",
        "from the second half on, before the last block",
        "only after the last block",
      ].filter((_, i) => L > 2 || i !== 1),
      begin: { stage: "head" },
      closed: "lens",
      measure: async () => {
        const readings = (await vitState.readAll()).map(vitParts.lens);
        return Array.from({ length: L + 1 }, (_, b) =>
          vitState.right(readings.map((lens) => lens[b])),
        );
      },
      right: (counts) => {
        const first = counts.findIndex((n) => n >= count / 2);
        if (first < 0 || first === L) return L > 2 ? 2 : 1;
        return first <= L / 2 ? 0 : 1;
      },
      reveal: (counts) =>
        `Before block 0 it reads ${counts[0]} of ${count}; ${counts
          .slice(1)
          .map((n, b) => `${n} after block ${b}`)
          .join(
            ", ",
          )}. The head was trained on the last stream alone, so this says when the answer stands in the head's own directions, not when the model knows it.`,
      task: "Look at “Which block decides” while you leaf through the examples. In which picture does the answer change last?",
    },
    {
      lesson: "08",
      name: "The untrained twin",
      question:
        "The same model with fresh random weights: how does its cls share out its attention?",
      answers: ["nearly alike over all tokens", "most of it on one patch", "most of it on itself"],
      begin: { stage: "attention" },
      measure: async () => {
        const twins = await vitState.readAll({}, vitState.twinWeights());
        const own = twins.flatMap(({ blocks }) =>
          blocks.flatMap(({ heads }) => heads.map(({ weights }) => row(weights, 0)[0])),
        );
        return {
          twin: sharpest(twins),
          own: mean(own),
          trained: sharpest(await vitState.readAll()),
          right: vitState.right(twins),
        };
      },
      right: ({ twin, own }) => (own > 0.5 ? 2 : twin < 2 / (patches + 1) ? 0 : 1),
      reveal: ({ twin, trained, right }) =>
        `Its largest weight is ${percent(twin)} on average, and alike would be ${percent(1 / (patches + 1))}; the trained model's is ${percent(trained)}. It reads ${right} of ${count}, and guessing would read about ${(count / classes.length).toFixed(0)}.`,
      task: "Under “Where it looks”, the twin's maps stand with the model's, on one scale. Choose the mean of the heads, then rollout: what is there to see in the twin's?",
      then: () => ({ twin: true }),
    },
    {
      lesson: "09",
      name: "Is that why?",
      question:
        "Rollout follows the attention through all blocks, and marks most the patch that cls takes most from. Now cls may not look at one patch of each picture: the marked one, or one drawn by lot from the others that are not empty. Without which are fewer pictures read?",
      answers: ["without the marked one", "without the one drawn by lot", "as few without either"],
      begin: { stage: "attention" },
      measure: async () => {
        const runs = await vitState.readAll();
        const readings = { marked: [], drawn: [] };
        const draw = vitState.generator(1);
        for (const [i, run] of runs.entries()) {
          const marked = vitState.best(row(rollout(run.blocks), 0).subarray(1));
          const light = brightness(examples[i]);
          const others = [...light.keys()].filter(
            (p) => p !== marked && light[p] > Math.min(...light),
          );
          const drawn = others[Math.floor(((draw.even() + 1) / 2) * others.length)] ?? marked;
          for (const [name, patch] of Object.entries({ marked, drawn })) {
            readings[name].push(
              (await vitState.readAll({ hidden: [patch] }, vitState.weights, [examples[i]]))[0],
            );
          }
        }
        return {
          before: vitState.right(runs),
          marked: vitState.right(readings.marked),
          drawn: vitState.right(readings.drawn),
        };
      },
      right: ({ marked, drawn }) => (marked < drawn ? 0 : marked > drawn ? 1 : 2),
      reveal: ({ before, marked, drawn }) =>
        `It reads ${before} of ${count} pictures; ${marked} when the marked patch is hidden from cls, and ${drawn} when the one drawn by lot is. The picture stayed whole. ` +
        (marked < drawn
          ? "So this is no mere correlation: cls reads from there."
          : "So for this model the map does not say what the answer needs."),
      task: "“Where it looks” shows rollout, and the pointer hides patches from cls now. Hide as few as you can until the answer changes. Then hide all but those.",
      then: () => {
        vitPicture.choose("hide");
        vitLooks.choose("rollout");
        return {};
      },
    },
  ];

  function build(place, opener) {
    let at = 0;
    const found = new Map(); // what a step measured
    const chosen = new Map(); // what was answered, and shown
    const first = new Map(); // and what was answered first
    let before = null; // the picture, and all else, as the learner left it
    opener.hidden = !labels.length;
    opener.disabled = false; // the button stands there before its program does
    const heading = make("h2", { tabIndex: -1 });
    const question = make("p", {});
    const form = make("div", {}); // a frame in a notebook may not submit forms
    const opens = make("span", { className: "small" }); // what the button opens
    const result = make("div", { "aria-live": "polite", id: "revealed" });
    const switches = vitParts.switches(); // of what a step took out, at hand
    const back = make("button", { type: "button", textContent: "Back" });
    const next = make("button", { type: "button", textContent: "Next" });
    const exit = make("button", { type: "button", textContent: "Leave the tour" });
    place.append(
      heading,
      question,
      form,
      result,
      make("div", { className: "row" }, back, next, exit),
    );
    place.hidden = true;

    function open(number) {
      at = number;
      const step = STEPS[at];
      place.hidden = false;
      heading.textContent = `${at + 1} of ${STEPS.length} · Lesson ${step.lesson} · ${step.name}`;
      question.textContent = step.question;
      const legend = make("legend", {}, "Predict");
      const fields = make("fieldset", {}, legend);
      step.answers.forEach((text, i) => {
        const input = make("input", { type: "radio", name: "answer", value: i });
        input.checked = chosen.get(at) === i;
        input.addEventListener("change", () => {
          result.replaceChildren();
          if (chosen.delete(at)) change(start(step));
        });
        fields.append(make("label", { className: "answer" }, input, text));
      });
      const show = make("button", { type: "button", textContent: "Show" });
      show.addEventListener("click", reveal);
      form.replaceChildren(fields, show, opens);
      result.replaceChildren();
      back.disabled = at === 0;
      next.hidden = false;
      next.textContent = at === STEPS.length - 1 ? "Finish" : "Next";
      vitPicture.choose("pick");
      vitLooks.choose("head");
      close(step.closed);
      change(start(step));
      heading.focus();
      if (chosen.has(at)) tell();
    }

    /* Close a part of the page until the question is answered, and open the others. */
    function close(name) {
      for (const { closed } of STEPS) {
        if (closed) document.getElementById(closed).closest("section").hidden = closed === name;
      }
      const title = (id) => document.getElementById(`${id}-title`).textContent;
      opens.textContent = name ? ` It opens “${title(name)}” too.` : "";
    }

    /* How the page stands when a question is asked. */
    function start(step) {
      return {
        base: examples[0].slice(),
        example: 0,
        shift: [0, 0],
        covered: new Set(),
        query: 0,
        twin: false,
        without: nothingOut(),
        ...step.begin,
      };
    }

    async function reveal() {
      const step = STEPS[at];
      const input = form.querySelector("input:checked");
      if (!input) {
        result.replaceChildren(
          make("p", {}, "Choose first: a guess that is wrong teaches more than none."),
        );
        return;
      }
      result.replaceChildren(make("p", {}, "Measuring …"));
      if (!found.has(step)) found.set(step, await step.measure());
      if (STEPS[at] !== step || place.hidden) return; // gone on, or left, meanwhile
      chosen.set(at, Number(input.value));
      if (!first.has(at)) first.set(at, Number(input.value));
      tell();
    }

    /* What came out, and what to try now. */
    function tell() {
      const step = STEPS[at],
        numbers = found.get(step);
      const right = step.right(numbers);
      const verdict = chosen.get(at) === right ? "Yes" : `No: ${step.answers[right]}`;
      const task = typeof step.task === "string" ? step.task : step.task(numbers);
      const changes = step.then ? step.then(numbers) : {};
      const gone = Object.keys(switches)
        .filter((name) => changes.without?.[name])
        .map((name) => switches[name]);
      result.replaceChildren(
        make("p", {}, make("strong", {}, `${verdict}. `), step.reveal(numbers)),
        make("p", {}, make("strong", {}, "Try it yourself. "), task),
        ...(gone.length ? [make("p", { className: "row" }, "Taken out: ", ...gone)] : []),
      );
      close();
      change({ ...start(step), ...changes }); // whatever was tried before
    }

    back.addEventListener("click", () => open(at - 1));
    next.addEventListener("click", () => (at === STEPS.length - 1 ? finish() : open(at + 1)));
    exit.addEventListener("click", leave);

    /* The last card: how many answers were foretold. */
    function finish() {
      const hits = [...first].filter(([i, answer]) => {
        return STEPS[i].right(found.get(STEPS[i])) === answer;
      });
      at = STEPS.length;
      heading.textContent = "The end of the tour";
      question.textContent =
        `You answered ${first.size} of ${STEPS.length} questions, ${hits.length} of them rightly at first. ` +
        "All that it showed stays on this page. Leave the tour, and your own picture is back.";
      form.replaceChildren();
      result.replaceChildren();
      next.hidden = true;
      heading.focus();
    }

    function leave() {
      place.hidden = true;
      if (at === STEPS.length) at = 0;
      close();
      vitPicture.choose(before.tool);
      vitLooks.choose(before.kind);
      change(before.state);
      before = null;
      opener.focus();
    }

    opener.addEventListener("click", () => {
      before ||= { state: { ...state }, tool: vitPicture.chosen(), kind: vitLooks.chosen() };
      open(at % STEPS.length);
    });
  }

  return { build, STEPS };
})();
