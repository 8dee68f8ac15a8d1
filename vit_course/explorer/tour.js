"use strict";

/* Six questions. Each is a prediction first; then the page measures, on this model and its
pictures, and says what came out; then there is something to try. No answer is written down here:
which one is right follows from what was measured. */
const vitTour = (() => {
  const { config, labels, examples, ink, state, change, nothingOut } = vitState;
  const { depth: L, num_heads: h, embed_dim: D } = config;
  const { row } = vitModel;
  const { make } = vitDrawing;
  const { best } = vitMeasures;
  const all = examples.length;
  const percent = (share) => `${(100 * share).toFixed(1)}%`;
  const out = (part) => ({ without: { ...nothingOut(), [part]: true } });

  /* The patch that cls takes most from, in each head of the last block. */
  const tops = ({ whole: { blocks } }) =>
    blocks[L - 1].heads.map(({ weights }) => best(row(weights, 0).subarray(1)));

  /* A step on what is left of the model without a part. */
  const left = (lesson, part, question, why) => ({
    name: `Lesson ${lesson} · Without ${part}`,
    question: `${question} For every 10 pictures that it gets right now, how many will it get
      right then?`,
    answers: ["more than 8", "3 to 8", "fewer than 3"],
    measure: ["count", out(part)],
    right: ({ before, after }) => (after > 0.8 * before ? 0 : after >= 0.3 * before ? 1 : 2),
    says: ({ before, after }) => `Whole, it gets ${before} of ${all} right; without ${part},
      ${after}. ${why}`,
    task: () => "Leaf through the examples with ▶: which class does it take for which now?",
    then: () => out(part),
  });

  /* A step: its question and answers, and `begin`, how the page stands meanwhile; what is measured;
  which answer what was found makes `right`, what it says, what to try, and the page `then`. */
  const STEPS = [
    left(
      "02",
      "positions",
      "Take the positions away.",
      "It still gets what is on each patch, but not where the patch is.",
    ),
    {
      name: "Lesson 03 · Heads",
      question: `From which patch does cls take most in this picture: is it the same in each head of
        block ${L - 1}?`,
      answers: ["the same in each", "not the same in all"],
      measure: ["run", { pixels: examples[0], covered: [], without: {} }],
      right: (found) => (new Set(tops(found)).size === 1 ? 0 : 1),
      says: (found) => `From head 0 to head ${h - 1}: patch ${tops(found).join(", ")}. Each head has
        queries and keys of its own, so each may look elsewhere.`,
      task: () => "“Every attention head” shows them all. In which block do the heads agree most?",
    },
    {
      name: "Lesson 04 · The square root of d",
      question: `Scores are divided by √${D / h}. Leave that out: what becomes of the largest weight
        that cls gives to a token, on average?`,
      answers: ["it grows", "it stays nearly as it is", "it shrinks"],
      measure: ["sharpness"],
      right: ({ before, after }) => (after > 1.02 * before ? 0 : after > 0.98 * before ? 1 : 2),
      says: (n) => `From ${percent(n.before)} it goes to ${percent(n.after)}. Scores further apart
        make a softmax sharper; but each later block also gets another stream. The model was trained
        with the division: without it, it gets ${n.right} of ${all} right.`,
      task: () => "On the road, “attention” has scores and weights: compare with √d and without.",
      then: () => ({ ...out("scale"), stage: "attention" }),
    },
    left(
      "05",
      "residuals",
      "Attention and MLP add to the stream. Let each replace it instead.",
      "Attention and MLP were trained to add to what is there, not to replace it.",
    ),
    {
      name: "Lesson 06 · Which block decides",
      question: `Let the head read the stream before block 0 and after each block. When does it
        first get at least half as many pictures right as at the end?`,
      answers: [...Array(L + 1).keys()].map((i) => (i ? `after block ${i - 1}` : "before block 0")),
      measure: ["lenses"],
      right: (counts) => counts.findIndex((n) => n >= counts[L] / 2),
      says: ([none, ...after]) => `Before block 0 it gets ${none} of ${all} right, and after the
        blocks, one by one: ${after.join(", ")}. The head was trained on the last stream alone. So
        this says when the answer stands where the head reads, not when the model has it.`,
      task: () => `Leaf through the examples, and watch “Which block decides”: in which picture does
        the answer come last?`,
    },
    {
      name: "Lesson 09 · Is that why?",
      question: `Rollout follows the attention through all blocks, and marks one patch most. Now cls
        may not look at one patch of each picture: the marked one, or one picked at random from the
        others${ink ? " that are not empty" : ""}. Without which does it get fewer right?`,
      answers: ["without the marked one", "without the random one", "the same without either"],
      measure: ["reasons"],
      right: ({ marked, drawn }) => (marked < drawn ? 0 : marked > drawn ? 1 : 2),
      says: (n) => `Whole, it gets ${n.before} of ${all} right; ${n.marked} with the marked patch
        hidden from cls, and ${n.drawn} with the random one.
        ${[1, 2, 3].includes(Math.abs(n.marked - n.drawn)) ? "So little may be chance." : ""}
        The picture stays whole, and the other tokens look there: in each head, cls gives that patch
        nothing, and its other weights grow until their sum is 1 again.
        ${config.pool === "mean" ? "But this model answers from its patches, not from cls." : ""}`,
      task: () => `Lit is what rollout marks, and the pointer hides patches from cls now. Hide as
        few as you can until the answer changes.`,
      then: () => ({ tool: "hide" }),
    },
  ];

  function build(place) {
    const part = (id) => document.getElementById(id);
    const found = new Map(); // of each step, what was measured,
    const first = new Map(); // and whether the first guess was right
    let at = 0;
    let job = null;
    let before = null; // all as the learner left it
    part("output").append(place); // beside the picture

    /* A step; after the last one, how it went. */
    function open(number) {
      at = number;
      const step = STEPS[at];
      const hits = [...first.values()].filter(Boolean).length;
      const end = `You answered ${first.size} of ${STEPS.length} questions, and got ${hits} of
        them right at your first guess. Leave the tour, and your own picture is back.`;
      part("step").textContent = step ? `${at + 1} of ${STEPS.length} · ${step.name}` : "The end";
      part("question").textContent = step ? step.question : end;
      const radio = { type: "radio", name: "guess", onchange: ask };
      const choice = (text, value) => make("label", {}, make("input", { ...radio, value }), text);
      part("guesses").replaceChildren(...(step?.answers ?? []).map(choice));
      part("show").hidden = part("next").hidden = !step;
      part("back").disabled = at === 0;
      place.hidden = false;
      ask();
      part("step").focus();
    }

    /* The page as the question finds it; what may give its answer away is closed. */
    function ask() {
      tell(at < STEPS.length);
      const whole = { covered: new Set(), twin: false, without: nothingOut() };
      const lit = { tool: "pick", light: "looks", kind: "rollout", query: 0, name: -1 };
      change({ base: examples[0], example: 0, ...whole, ...lit, ...STEPS[at]?.begin });
    }

    /* Say this, each with a word in front, and close or open what is below. */
    function tell(closed, ...words) {
      job?.stop();
      const said = words.map(([word, text]) => make("p", {}, make("strong", {}, word), text));
      part("revealed").replaceChildren(...said);
      document.body.classList.toggle("predict", closed);
    }

    async function show() {
      const step = STEPS[at];
      const guess = place.querySelector("input:checked")?.value;
      ask();
      if (!guess) return tell(true, ["Choose first. ", "A wrong guess teaches more than none."]);
      if (!found.has(step)) job = vitParts.measure(part("show"), ...step.measure);
      const numbers = found.get(step) ?? (await job);
      if (!numbers || STEPS[at] !== step || place.hidden) return; // stopped, or gone on meanwhile
      const right = step.right(numbers);
      const hit = right === Number(guess);
      found.set(step, numbers);
      if (!first.has(step)) first.set(step, hit);
      const verdict = hit ? "Yes. " : `No: ${step.answers[right]}. `;
      tell(false, [verdict, step.says(numbers)], ["Try it yourself. ", step.task(numbers)]);
      change(step.then?.(numbers) ?? {});
      place.scrollIntoView({ block: "nearest" });
    }

    function leave() {
      tell(false);
      place.hidden = true;
      change(before);
      before = null;
      part("start-tour").focus();
    }

    part("start-tour").hidden = labels.length < 20; // counts of so few say nothing
    part("start-tour").onclick = () => {
      before ??= { ...state };
      open(at % STEPS.length);
    };
    const ways = { show, leave, back: () => open(at - 1), next: () => open(at + 1) };
    for (const [id, way] of Object.entries(ways)) part(id).onclick = way;
  }

  return { build };
})();
