// Bundles the extension (one CJS file) and the page of the chat view; with --tests the tests too, with --wheel the server.
import { execFileSync } from "node:child_process";
import { copyFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** The same wheel without compression: packed as a whole into the .vsix it is a third smaller than file by file. */
const STORE = `
import io, sys, zipfile
from pathlib import Path
path, made = Path(sys.argv[1]), io.BytesIO()
with zipfile.ZipFile(path) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as new:
    for each in old.infolist():
        info = zipfile.ZipInfo(each.filename, each.date_time)
        info.external_attr = each.external_attr
        new.writestr(info, old.read(each))
path.write_bytes(made.getvalue())
`;

/** The licenses of the packages of which something is in the bundles, as they ask for it. */
function writeNotices(bundles) {
  const inputs = bundles.flatMap(({ metafile }) => Object.keys(metafile.inputs));
  const folders = inputs.map((name) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(name)?.[0]).filter(Boolean);
  const notices = [...new Set(folders)].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(here, folder, "package.json"), "utf8"));
    const file = readdirSync(join(here, folder)).find((each) => /^licen[cs]e/i.test(each));
    if (file === undefined) throw new Error(`${name} has no license file.`);
    return `${name} ${version} (${license})\n\n${readFileSync(join(here, folder, file), "utf8").trim()}\n`;
  });
  writeFileSync(join(here, "dist", "NOTICES.txt"), notices.join(`\n${"-".repeat(80)}\n\n`));
}

const here = dirname(fileURLToPath(import.meta.url));
const given = new Set(process.argv.slice(2));
const common = {
  absWorkingDir: here,
  bundle: true,
  logLevel: "warning",
  metafile: true,
  minify: given.has("--release"),
  sourcemap: given.has("--release") ? false : "inline",
};
const node = { ...common, platform: "node", format: "cjs", target: "node20", external: ["vscode"] };

rmSync(join(here, "dist"), { recursive: true, force: true });
const extension = await build({ ...node, entryPoints: ["src/extension.ts"], outfile: "dist/extension.js" });
const page = await build({
  ...common,
  entryPoints: ["src/view/page.ts"],
  outfile: "dist/view.js",
  format: "iife",
  target: "es2022",
});
writeNotices([extension, page]);
await build({ ...common, entryPoints: ["src/view/page.css"], outfile: "dist/view.css" });
if (given.has("--tests")) {
  const tests = readdirSync(join(here, "test")).filter((name) => name.endsWith(".test.ts"));
  await build({ ...node, entryPoints: tests.map((name) => `test/${name}`), outdir: "dist/test", sourcemap: "inline" });
}
if (given.has("--wheel")) {
  const root = join(here, "..", "..");
  const folder = join(here, "server");
  const python = process.env.PYTHON ?? "python3";
  rmSync(folder, { recursive: true, force: true });
  const words = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, root];
  execFileSync(python, words, { stdio: "inherit" });
  const [wheel] = readdirSync(folder);
  execFileSync(python, ["-c", STORE, join(folder, wheel)], { stdio: "inherit" });
  copyFileSync(join(root, "LICENSE"), join(here, "LICENSE"));
  copyFileSync(join(root, "CHANGELOG.md"), join(here, "CHANGELOG.md"));
}
