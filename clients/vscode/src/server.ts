// Where the server comes from: found, agreed to, or installed from the wheel that this extension carries.
import { execFile } from "node:child_process";
import { accessSync, constants, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { NoServer } from "./client";
import { asShell, findServer, installCommands, PYTHON_CHECK, PYTHONS, SETTINGS, word } from "./settings";
import { oneLine } from "./view/inert";
import type { Editor } from "./vscodeapi";

const AGREED = "server.agreed";
const PREFER_OWN = "server.preferOwn";
const INSTALL_MS = 600_000;
const run = promisify(execFile);

export class ServerSource {
  private readonly own: string;
  private installing: Promise<boolean> | undefined;

  /** `installed` hears that a server has come that was not there. */
  constructor(
    private readonly editor: Editor,
    private readonly installed: () => unknown,
  ) {
    this.own = join(editor.storage, "server");
  }

  /** The program to start. Throws NoServer. */
  async find(): Promise<string> {
    const { editor } = this;
    const found = findServer({
      setting: word(editor.setting(SETTINGS.serverPath)) ?? "",
      path: process.env.PATH ?? "",
      own: this.own,
      preferOwn: editor.recall(PREFER_OWN, "everywhere") === true,
      python: await editor.python().catch(() => undefined),
      agreed: word(editor.recall(AGREED, "everywhere")),
      folders: editor.folders(),
      isProgram,
    });
    switch (found.is) {
      case "found":
        return found.program;
      case "wrong setting":
        throw new NoServer(`The setting lyma.server.path names no program: ${oneLine(found.program)}`, "setting");
      case "to agree":
        return this.agree(found.program);
      case "missing":
        throw new NoServer("Lyma's server is not installed.", "install");
    }
  }

  /** Tell that there is no server, with what helps. Resolves to true where that has brought one. */
  async offer({ message, remedy }: NoServer): Promise<unknown> {
    const { editor } = this;
    const showLog = { label: "Show Log", run: () => editor.log.show() };
    const settings = {
      label: "Open Settings",
      run: () => editor.run("workbench.action.openSettings", "lyma.server.path"),
    };
    if (remedy === "log") return editor.fail(message, showLog);
    if (remedy === "setting") return editor.fail(message, settings);
    const install = { label: "Install", run: () => this.install() };
    const copy = { label: "Copy Command", run: () => this.copyCommand() };
    return editor.fail(`${message} Install it into a private environment of this editor?`, install, copy, settings);
  }

  /** Make the private environment anew. Whether there is a server now. */
  async install(): Promise<boolean> {
    this.installing ??= this.editor
      .progress("Installing Lyma's server", (report) => this.make(report))
      .finally(() => {
        this.installing = undefined;
      });
    return this.installing;
  }

  /** The program `lyma` that belongs to the server. */
  async terminalProgram(): Promise<string> {
    const program = join(dirname(await this.find()), "lyma");
    if (isProgram(program)) return program;
    throw new Error(
      `The program ${oneLine(program)} is missing; it belongs beside the server. Run “lyma setup” in a terminal.`,
    );
  }

  private async make(report: (text: string) => void): Promise<boolean> {
    const { editor } = this;
    try {
      const python = await findPython();
      for (const [program, words] of installCommands(python, this.own, this.wheel())) {
        report(oneLine(words.slice(0, 3).join(" ")));
        editor.log.info(asShell([[program, words]]));
        const { stdout, stderr } = await run(program, words, { timeout: INSTALL_MS });
        editor.log.info(`${stdout}${stderr}`);
      }
    } catch (problem) {
      const { stderr, message } = problem as { stderr?: string; message: string };
      editor.log.error(`${message}\n${stderr ?? ""}`);
      const showLog = { label: "Show Log", run: () => editor.log.show() };
      void editor.fail(`The server could not be installed: ${lastLine(stderr) ?? oneLine(message)}`, showLog);
      return false;
    }
    await editor.remember(PREFER_OWN, true, "everywhere");
    await this.installed();
    void editor.info("Lyma's server is installed.");
    return true;
  }

  private async copyCommand(): Promise<void> {
    await this.editor.copy(asShell(installCommands("python3", this.own, this.wheel())));
    void this.editor.info("The command is in the clipboard; run it in a terminal, then ask again.");
  }

  private wheel(): string {
    const folder = join(this.editor.extension, "server");
    const name = readdirSync(folder).find((each) => each.endsWith(".whl"));
    if (name === undefined) throw new Error(`There is no wheel in ${folder}.`);
    return join(folder, name);
  }

  /** A workspace can choose the Python environment, so a person is asked before a program of it is started. */
  private async agree(program: string): Promise<string> {
    const use = "Use It";
    const detail = `${program}\n\nIt belongs to the selected Python environment. It will be started in every workspace from now on.`;
    const chosen = await this.editor.confirm("Use this server?", detail, use);
    if (chosen !== use) throw new NoServer("Lyma's server is not installed.", "install");
    await this.editor.remember(AGREED, program, "everywhere");
    return program;
  }
}

async function findPython(): Promise<string> {
  for (const python of PYTHONS) {
    try {
      await run(python, ["-c", PYTHON_CHECK], { timeout: 10_000 });
      return python;
    } catch {
      // the next one
    }
  }
  throw new Error("Python 3.11 or newer with venv is needed; on Debian and Ubuntu: sudo apt install python3-venv");
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function lastLine(text: string | undefined): string | undefined {
  const line = text?.trim().split("\n").at(-1);
  return line === undefined || line === "" ? undefined : oneLine(line, 300);
}
