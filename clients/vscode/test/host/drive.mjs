// node drive.mjs SCENARIO JSON: run one scenario in a window of its own; its last line of output is what it found, as JSON.
import { mkdirSync } from "node:fs";
import { scenarios } from "./scenarios.mjs";
import { openWindow } from "./window.mjs";

const [name, json] = process.argv.slice(2);
const given = JSON.parse(json);
mkdirSync(given.shots, { recursive: true });
const window = await openWindow(given);
const errors = [];
window.page.on("pageerror", (problem) => errors.push(String(problem)));
try {
  const found = await scenarios[name](window, given);
  console.log(JSON.stringify({ ...found, errors }));
} catch (problem) {
  await window.shot("failed").catch(() => undefined);
  console.error(problem);
  process.exitCode = 1;
} finally {
  await window.close();
}
