// Bundles the extension (one CJS file) and the page of the chat view; with --tests the tests too, with --wheel the server.
import { execFileSync } from "node:child_process";
import { copyFileSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const given = new Set(process.argv.slice(2));
const common = {
  absWorkingDir: here,
  bundle: true,
  logLevel: "warning",
  minify: given.has("--release"),
  sourcemap: given.has("--release") ? false : "inline",
};
const node = { ...common, platform: "node", format: "cjs", target: "node20", external: ["vscode"] };

rmSync(join(here, "dist"), { recursive: true, force: true });
await build({ ...node, entryPoints: ["src/extension.ts"], outfile: "dist/extension.js" });
await build({
  ...common,
  entryPoints: ["src/view/page.ts"],
  outfile: "dist/view.js",
  format: "iife",
  target: "es2022",
});
await build({ ...common, entryPoints: ["src/view/page.css"], outfile: "dist/view.css" });
if (given.has("--tests")) {
  const tests = readdirSync(join(here, "test")).filter((name) => name.endsWith(".test.ts"));
  await build({ ...node, entryPoints: tests.map((name) => `test/${name}`), outdir: "dist/test", sourcemap: "inline" });
}
if (given.has("--wheel")) {
  const root = join(here, "..", "..");
  rmSync(join(here, "server"), { recursive: true, force: true });
  execFileSync(
    process.env.PYTHON ?? "python3",
    ["-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", join(here, "server"), root],
    { stdio: "inherit" },
  );
  copyFileSync(join(root, "LICENSE"), join(here, "LICENSE"));
  copyFileSync(join(root, "CHANGELOG.md"), join(here, "CHANGELOG.md"));
}
