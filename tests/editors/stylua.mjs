// node stylua.mjs FOLDER FILE...: print the files that StyLua would write otherwise. FOLDER has node_modules.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [folder, ...files] = process.argv.slice(2);
const stylua = createRequire(join(folder, "x.js"))("@johnnymorganz/stylua");
for (const file of files) {
  const config = stylua.Config.new();
  config.syntax = stylua.LuaVersion.LuaJIT;
  config.column_width = 120;
  config.indent_type = stylua.IndentType.Spaces;
  config.indent_width = 2;
  config.quote_style = stylua.QuoteStyle.AutoPreferDouble;
  config.collapse_simple_statement = stylua.CollapseSimpleStatement.Always;
  const text = readFileSync(file, "utf8");
  if (stylua.formatCode(text, config, undefined, stylua.OutputVerification.Full) !== text) console.log(file);
}
