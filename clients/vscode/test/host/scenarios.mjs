// What a person does, scenario by scenario. What only the page shows is asserted here, the rest by whoever runs them.

/** How long the view may take to say so after a click. */
const SOON_MS = 10_000;

export const scenarios = {
  /** Ask from the palette; stop while it streams where `stop` says so. */
  async ask(window, { prompt, expect, stop, edit, shot = "ask" }) {
    if (edit) await window.open(edit);
    await window.ask(prompt);
    await window.shows(expect);
    let stopMs;
    if (stop) {
      const begun = Date.now();
      await window.chat.locator("#stop").click();
      await window.shows("Stopped.");
      stopMs = Date.now() - begun;
    }
    await window.idle();
    await window.shot(shot);
    return { stopMs, ...(await window.seen()) };
  },

  /** The keyboard alone: focus the view, ask, leave the line, stop with Escape. */
  async keyboard(window, { prompt, expect }) {
    await window.command("Lyma: New Conversation");
    await window.command("Lyma: Focus on Chat View");
    const box = window.chat.locator("#prompt");
    await box.focus();
    await window.page.keyboard.type(prompt);
    await window.page.keyboard.press("Enter");
    await window.shows(expect);
    await window.page.keyboard.press("Escape");
    await window.shows("Stopped.");
    const roles = await window.chat
      .locator("body")
      .evaluate((body) => ({
        log: body.querySelector("[role=log]")?.getAttribute("aria-label"),
        status: body.querySelector("[role=status]")?.textContent,
        label: body.querySelector("label[for=prompt]")?.textContent,
      }));
    return roles;
  },

  /** An edit is applied in an open editor, and undone with the editor's own undo. */
  async edit(window, { file, prompt, before, after, shot }) {
    await window.open(file);
    await window.editorShows(before);
    await window.ask(prompt);
    await window.editorShows(after);
    await window.idle();
    await window.chat.locator(".card.edit").first().waitFor();
    if (shot) await window.shot(shot);
    await window.page.locator(".tab", { hasText: file }).first().click();
    await window.page.keyboard.press("Control+Z");
    await window.editorShows(before);
    return { text: await window.editorText() };
  },

  /** An edit that is to be confirmed waits in VS Code's own preview until it is applied there. */
  async confirm(window, { file, prompt, before, after }) {
    await window.open(file);
    await window.editorShows(before);
    await window.ask(prompt);
    const panel = window.page.locator(".part.panel");
    await panel.getByText("Refactor Preview").first().waitFor();
    await panel.locator("input[type=checkbox]").first().click();
    await window.shot("confirm");
    await panel.getByText("Apply", { exact: true }).first().click();
    await window.shows("Done.");
    await window.idle();
    await window.page.locator(".tab", { hasText: file }).first().click();
    await window.editorShows(after);
    return { text: await window.editorText() };
  },

  /** Ask for an approval; press a button of the dialog, or dismiss it. */
  async approval(window, { prompt, press, expect, shot, readFirst }) {
    await window.ask(prompt);
    await window.dialog().waitFor();
    const question = await window.dialog().innerText();
    if (shot) await window.shot(shot);
    const tab = await window.page.locator(".tab.active").innerText();
    if (readFirst) {
      await window.press("Read First");
      await window.editorShows("May");
      await window.page.locator(".notification-toast .monaco-button", { hasText: "Decide" }).first().click();
      await window.dialog().waitFor();
    }
    if (press === undefined) await window.dismiss();
    else await window.press(press);
    await window.shows(expect);
    await window.idle();
    await window.page.locator(".tab", { hasText: "agent.txt" }).waitFor({ state: "detached" });
    return { question, tab, ...(await window.seen()) };
  },

  /** The server dies; it is started again and the next ask is answered. */
  async crash(window, { prompt, next, expect }) {
    await window.ask(prompt);
    await window.toast("Lyma's server stopped; it is started again").waitFor();
    await window.chat.locator(".failure").waitFor();
    await window.idle();
    await window.ask(next);
    await window.shows(expect);
    return window.seen();
  },

  /** An answer that means harm. */
  async attack(window, { prompt, expect }) {
    const asked = [];
    window.page.on("request", (request) => asked.push(request.url()));
    await window.ask(prompt);
    await window.shows(expect, 60_000);
    await window.idle();
    const log = window.chat.locator("#log");
    const found = await log.evaluate((root) => {
      const texts = root.textContent;
      return {
        elements: [...new Set([...root.querySelectorAll(".answer *")].map((each) => each.localName))].sort(),
        attributes: [
          ...new Set([...root.querySelectorAll(".answer *")].flatMap((each) => each.getAttributeNames())),
        ].sort(),
        links: [...root.querySelectorAll("a")].map((each) => each.getAttribute("href")),
        raw: ["<script>", "\u202e", "\u001b"].map((each) => texts.includes(each)),
        hacked: globalThis.hacked ?? null,
        length: texts.length,
        wide: root.scrollWidth > root.clientWidth,
      };
    });
    const foreign = asked.filter((url) => url.includes("example"));
    return { ...found, foreign };
  },

  /** Leave in the middle of a turn. */
  async leave(window, { prompt, expect }) {
    await window.ask(prompt);
    await window.shows(expect);
    const closed = Date.now();
    await window.page.goto("about:blank"); // as closing the tab does, with the farewells that a killed browser cannot say
    return { closed };
  },

  /** Reload in the middle of a conversation; it is shown again and goes on. */
  async reload(window, { prompt, expect, next, then }) {
    await window.ask(prompt);
    await window.shows(expect);
    await window.idle();
    await window.chat.locator("#prompt").fill("a draft");
    await window.page.waitForTimeout(7000); // the window writes its state down now and then
    await window.page.reload({ waitUntil: "domcontentloaded" });
    await window.ready();
    await window.shows(expect, 60_000);
    const draft = await window.chat.locator("#prompt").inputValue();
    await window.ask(next);
    await window.shows(then);
    await window.idle();
    return { draft, ...(await window.seen()) };
  },

  /** A folder that nobody trusts: there is no such command. */
  async untrusted(window) {
    const dialog = window.dialog();
    await dialog.waitFor();
    await window.press("No, I don't trust");
    await window.page.keyboard.press("F1");
    const input = window.page.locator(".quick-input-widget input").first();
    await input.fill(">Lyma: Ask");
    await window.page
      .locator(".quick-input-list", { hasText: "No matching commands" })
      .waitFor({ timeout: SOON_MS })
      .catch(() => undefined);
    const rows = await window.page.locator(".quick-input-list .monaco-list-row").allInnerTexts();
    return { rows };
  },

  /** No server: the message's button makes it work. */
  async install(window, { prompt, expect, shot }) {
    await window.ask(prompt);
    const toast = window.toast("Lyma's server is not installed.");
    await toast.waitFor();
    if (shot) await window.shot(shot);
    await toast.locator(".monaco-button", { hasText: "Install" }).click();
    await window.toast("Installing Lyma's server").waitFor();
    await window.toast("Lyma's server is installed.").waitFor({ timeout: 300_000 });
    await window.shows(expect, 60_000); // to what was asked in vain
    return window.seen();
  },

  /** No key: the button in the view opens a terminal that asks for one, and then the answer comes. */
  async addKey(window, { prompt, address, expect, shot }) {
    await window.ask(prompt);
    await window.chat.locator(".failure button", { hasText: "Add Key" }).click();
    const terminal = window.page.locator(".terminal.xterm .xterm-rows");
    const answers = [
      ["Number or name:", "local"],
      ["Address", address],
      ["Key for local", "sk-pasted-unseen"],
    ];
    for (const [question, answer] of answers) {
      await terminal.filter({ hasText: question }).waitFor();
      await window.page.keyboard.type(answer);
      if (shot && answer === "local") await window.shot(shot);
      await window.page.keyboard.press("Enter");
    }
    await window.toast("The key is stored").waitFor({ timeout: 60_000 });
    await window.ask(prompt);
    await window.shows(expect, 60_000);
    return { ...(await window.seen()), page: await window.page.locator("body").innerText() };
  },

  /** The tests inside the extension host have run by now. */
  async suite() {
    return {};
  },

  /** A message that means harm, in a notification. */
  async notification(window, { title, expect }) {
    await window.command(title);
    const toast = window.toast(expect);
    await toast.waitFor();
    const message = toast.locator(".notification-list-item-message");
    return { text: await message.innerText(), links: await message.locator("a").count() };
  },

  /** What the status command shows. */
  async status(window, { expect, shot }) {
    await window.command("Lyma: Show Status");
    await window.editorShows(expect);
    if (shot) await window.shot(shot);
    return { text: await window.editorText() };
  },

  /** How long after the server sent a delta the page had painted it, in milliseconds. */
  async latency(window, { count }) {
    await window.ask("stamps 1");
    await window.idle();
    await watchStamps(window);
    await window.chat.locator("#prompt").fill(`stamps ${count}`);
    await window.page.keyboard.press("Enter");
    await window.chat.locator(".note.end").nth(1).waitFor();
    const stamps = await window.chat.locator("body").evaluate(() => globalThis.stamps);
    return { stamps };
  },

  /** What the page has to do while very many deltas arrive, for one prompt after the other. */
  async flood(window, { prompts, redraw = false }) {
    await window.ask("stamps 1");
    await window.idle();
    const found = {};
    for (const prompt of prompts) {
      await window.command("Lyma: New Conversation");
      await window.chat.locator("#log:not(:has(.turn))").waitFor();
      await window.chat.locator("#prompt").fill(prompt);
      found[prompt] = await measure(window, async () => {
        await window.page.keyboard.press("Enter");
        await window.chat.locator(".note.end").waitFor({ timeout: 120_000 });
      });
      Object.assign(found[prompt], await window.chat.locator("#log").evaluate(describeLog));
      if (redraw) found[prompt].isAsDrawnAtOnce = await isAsDrawnAtOnce(window);
    }
    return { found };
  },

  /** Pictures for the README. */
  async pictures(window, { file, prompt, expect }) {
    await window.open(file);
    await window.ask(prompt);
    await window.shows(expect);
    await window.idle();
    await window.page.waitForTimeout(300);
    await window.shot("chat");
    return {};
  },
};

async function watchStamps(window) {
  await window.chat.locator("body").evaluate((body) => {
    const seen = new Set();
    globalThis.stamps = [];
    const look = (note) => {
      for (const [, stamp] of body.textContent.matchAll(/at (\d{13})\./g)) {
        if (!seen.has(stamp) && note)
          requestAnimationFrame(() => setTimeout(() => globalThis.stamps.push(Date.now() - stamp)));
        seen.add(stamp);
      }
    };
    look(false);
    new MutationObserver(() => look(true)).observe(body, { childList: true, subtree: true, characterData: true });
  });
}

/** Whether what was drawn bit by bit is what a page draws that gets the whole answer. */
async function isAsDrawnAtOnce(window) {
  const html = () => window.chat.locator(".answer").innerHTML();
  const before = await html();
  await window.command("Developer: Reload Webviews");
  for (let attempt = 0; attempt < 100; attempt += 1) {
    await window.page.waitForTimeout(100);
    if ((await html()) === before) return true;
  }
  return false;
}

/** What the log holds at last. */
function describeLog(log) {
  return {
    last: log.textContent.slice(-200),
    codes: log.querySelectorAll("code").length,
    elements: log.querySelectorAll("*").length,
    heapMb: Math.round(performance.memory.usedJSHeapSize / (1 << 20)),
    below: log.scrollHeight - log.scrollTop - log.clientHeight,
  };
}

/** Do it and tell what it took, in milliseconds: the longest frames as the page itself measures them, with what they were
 * spent on, and the longest tasks of the page's main thread by the time for which that thread really ran. The difference is
 * the time for which others had the processor. Nothing is taken off: the workbench runs on the same thread and is counted. */
async function measure(window, work) {
  await window.page.evaluate(watchFrames);
  const tasks = await traceTasks(window);
  const begun = Date.now();
  await work();
  await window.page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn, 100))));
  const ms = Date.now() - begun;
  const frames = await window.page.evaluate(() => globalThis.stopWatching());
  return { ms, ...frames, ...(await tasks()) };
}

/** In the page of the workbench, which hears of the frames of the view in it too. */
function watchFrames() {
  const frames = [];
  const long = [];
  let last = performance.now();
  let next = requestAnimationFrame(function tick(now) {
    frames.push(now - last);
    last = now;
    next = requestAnimationFrame(tick);
  });
  const note = ({ startTime, duration, styleAndLayoutStart, scripts }) => {
    const isOurs = ({ sourceURL }) => sourceURL.includes("view.js");
    const ours = scripts.filter(isOurs).reduce((sum, script) => sum + script.duration, 0);
    const drawing = styleAndLayoutStart === 0 ? 0 : startTime + duration - styleAndLayoutStart;
    long.push({ ms: Math.round(duration), ours: Math.round(ours), drawing: Math.round(drawing) });
  };
  const observer = new PerformanceObserver((list) => list.getEntries().forEach(note));
  observer.observe({ type: "long-animation-frame" });
  globalThis.stopWatching = () => {
    cancelAnimationFrame(next);
    observer.takeRecords().forEach(note);
    observer.disconnect();
    const over = frames.filter((each) => each > 100).length;
    const worst = long.sort((one, other) => other.ms - one.ms).slice(0, 5);
    return { frames: frames.length, over, worstFrame: Math.round(Math.max(...frames)), longest: worst };
  };
}

/** Write down the tasks of every thread; the result ends that and tells of the busiest main thread of a page. */
async function traceTasks(window) {
  const session = await window.program.newBrowserCDPSession();
  const events = [];
  session.on("Tracing.dataCollected", ({ value }) => events.push(...value));
  const ended = new Promise((resolve) => session.once("Tracing.tracingComplete", resolve));
  const traceConfig = { includedCategories: ["toplevel", "__metadata"] };
  await session.send("Tracing.start", { transferMode: "ReportEvents", traceConfig });
  return async () => {
    await session.send("Tracing.end");
    await ended;
    await session.detach();
    return busiest(events);
  };
}

function busiest(events) {
  const isMain = ({ name, args }) => name === "thread_name" && args.name === "CrRendererMain";
  const threads = events.filter(isMain).map(({ pid, tid }) => {
    const isTask = (each) => each.pid === pid && each.tid === tid && each.ph === "X" && each.name.endsWith("RunTask");
    return events.filter(isTask).map(({ tdur = 0 }) => tdur / 1000);
  });
  const sum = (numbers) => numbers.reduce((all, each) => all + each, 0);
  const tasks = threads.sort((one, other) => sum(other) - sum(one))[0];
  return { ran: Math.round(sum(tasks)), worstTasks: worst(tasks) };
}

function worst(numbers) {
  return [...numbers]
    .sort((one, other) => other - one)
    .slice(0, 6)
    .map(Math.round);
}
