import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { pageHtml } from "../src/html";
import { asShell, findServer, installCommands, type Places, SETTINGS } from "../src/settings";

interface Manifest {
  contributes: {
    commands: { command: string; title: string }[];
    configuration: { properties: Record<string, { default: unknown; scope: string }> };
    keybindings: { command: string }[];
    menus: Record<string, { command: string }[]>;
    walkthroughs: { steps: { description: string; media: { markdown: string } }[] }[];
    views: Record<string, { id: string }[]>;
  };
}

const manifest = JSON.parse(readFileSync("package.json", "utf8")) as Manifest;
const sources = readdirSync("src").map((name) => (name.endsWith(".ts") ? readFileSync(`src/${name}`, "utf8") : ""));
const NONE: Places = {
  setting: "",
  path: "",
  own: "/own",
  preferOwn: false,
  python: undefined,
  agreed: undefined,
  folders: ["/srv/project"],
  isProgram: () => true,
};

test("the settings of package.json are those that are read, with their defaults", () => {
  const { properties } = manifest.contributes.configuration;
  assert.deepEqual(
    Object.keys(properties).sort(),
    Object.values(SETTINGS)
      .map((name) => `lyma.${name}`)
      .sort(),
  );
  assert.equal(properties["lyma.server.path"]?.default, "");
  assert.equal(properties["lyma.chat.showThinking"]?.default, false);
  assert.ok(Object.values(properties).every(({ scope }) => scope === "machine"));
});

test("every command that is offered is there, and its name is none of the server's", () => {
  const offered = manifest.contributes.commands.map(({ command }) => command);
  const menus = Object.values(manifest.contributes.menus).flat();
  const links = manifest.contributes.walkthroughs.flatMap(({ steps }) =>
    steps.map(({ description }) => /command:([\w.]+)/.exec(description)?.[1] ?? ""),
  );
  for (const command of [
    ...menus.map(({ command }) => command),
    ...manifest.contributes.keybindings.map(({ command }) => command),
    ...links,
  ]) {
    assert.ok(offered.includes(command), command);
  }
  for (const command of offered) {
    assert.match(command, /^lyma\.\w+\.\w+$/); // the server's own are lyma.ask, lyma.approve, ...
    const last = command.split(".").at(-1) ?? "";
    const short = command.replace(/^lyma\./, "");
    assert.ok(
      sources.some((text) => text.includes(short) || new RegExp(`\\b${last}: \\(`).test(text)),
      command,
    );
  }
});

test("the walkthrough's pages are there", () => {
  for (const { media } of manifest.contributes.walkthroughs.flatMap(({ steps }) => steps)) {
    assert.ok(readFileSync(media.markdown, "utf8").length > 100);
  }
});

test("the setting comes first, and a wrong one is not passed over", () => {
  const places = { ...NONE, setting: "/opt/lyma-server", path: "/usr/bin" };
  assert.deepEqual(findServer(places), { is: "found", program: "/opt/lyma-server" });
  assert.equal(findServer({ ...places, isProgram: () => false }).is, "wrong setting");
  assert.equal(findServer({ ...places, setting: "relative/lyma-server" }).is, "wrong setting");
});

test("then the PATH, but nothing in a workspace and nothing relative", () => {
  const path = "/srv/project/bin:node_modules/.bin:.:/srv/project:/usr/bin";
  assert.deepEqual(findServer({ ...NONE, path }), { is: "found", program: "/usr/bin/lyma-server" });
  assert.deepEqual(findServer({ ...NONE, path: "/srv/projects/bin" }), {
    is: "found",
    program: "/srv/projects/bin/lyma-server",
  });
});

test("a Python environment is used only once a person has agreed to it", () => {
  const isProgram = (path: string) => path.startsWith("/env/");
  const selected = { ...NONE, isProgram, python: "/env/bin/python" };
  assert.deepEqual(findServer(selected), { is: "to agree", program: "/env/bin/lyma-server" });
  assert.deepEqual(findServer({ ...selected, python: undefined, agreed: "/env/bin/lyma-server" }), {
    is: "found",
    program: "/env/bin/lyma-server",
  });
  assert.equal(findServer({ ...selected, python: "python3" }).is, "missing");
});

test("the private environment is the last, or the first where a person has installed it", () => {
  const places = { ...NONE, path: "/usr/bin" };
  assert.deepEqual(findServer({ ...places, preferOwn: true }), { is: "found", program: "/own/bin/lyma-server" });
  assert.deepEqual(findServer({ ...places, isProgram: (path) => path.startsWith("/own") }), {
    is: "found",
    program: "/own/bin/lyma-server",
  });
  assert.deepEqual(findServer({ ...places, isProgram: () => false }), { is: "missing" });
});

test("the commands that install are what a person can run", () => {
  const shell = asShell(installCommands("python3", "/home/a b/server", "/ext/it's.whl"));
  assert.equal(
    shell,
    "python3 -m venv --clear '/home/a b/server' && '/home/a b/server/bin/python' -m pip install --disable-pip-version-check '/ext/it'\\''s.whl'",
  );
});

test("the page may load its own style, run its own script and do nothing else", () => {
  const html = pageHtml({ script: "local:view.js", style: "local:view.css", source: "local:" }, "N0nce");
  const policy = /Content-Security-Policy" content="([^"]+)"/.exec(html)?.[1];
  assert.equal(
    policy,
    "default-src 'none'; style-src local:; script-src 'nonce-N0nce'; base-uri 'none'; form-action 'none'",
  );
  assert.doesNotMatch(html, /unsafe|https?:|\son\w+=|style="/);
  assert.notEqual(pageHtml({ script: "", style: "", source: "" }), pageHtml({ script: "", style: "", source: "" }));
});
