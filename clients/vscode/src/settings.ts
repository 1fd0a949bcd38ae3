// The settings and where the server is: decisions over what the editor and the disk say.
import { delimiter, isAbsolute, join, relative } from "node:path";

export const SERVER = "lyma-server";

/** The names of the settings in package.json, without their prefix. */
export const SETTINGS = { serverPath: "server.path", showThinking: "chat.showThinking" } as const;

export function word(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

export interface Places {
  /** What the setting says; empty: nothing. */
  readonly setting: string;
  readonly path: string;
  /** The environment that this extension made for itself. */
  readonly own: string;
  /** Whether the person has had that one made because another was missing or too old. */
  readonly preferOwn: boolean;
  /** The selected Python interpreter, and the one that the person has agreed to. */
  readonly python: string | undefined;
  readonly agreed: string | undefined;
  readonly folders: readonly string[];
  readonly isProgram: (path: string) => boolean;
}

export type Found =
  | { readonly is: "found"; readonly program: string }
  | { readonly is: "wrong setting"; readonly program: string }
  | { readonly is: "to agree"; readonly program: string }
  | { readonly is: "missing" };

/** The server: the setting, the PATH, the environment that the person agreed to, the private one. A workspace can choose
 * the Python environment, so one that nobody has agreed to is only offered; nothing inside a workspace is looked at on the PATH. */
export function findServer(places: Places): Found {
  if (places.setting !== "") {
    const isUsable = isAbsolute(places.setting) && places.isProgram(places.setting);
    return { is: isUsable ? "found" : "wrong setting", program: places.setting };
  }
  const own = join(places.own, "bin", SERVER);
  const selected = places.python === undefined ? undefined : join(places.python, "..", SERVER);
  const agreed = places.agreed === undefined ? [] : [places.agreed];
  const others = [...onPath(places), ...agreed];
  const program = (places.preferOwn ? [own, ...others] : [...others, own]).find(places.isProgram);
  if (program !== undefined) {
    return { is: "found", program };
  }
  if (selected !== undefined && isAbsolute(selected) && places.isProgram(selected)) {
    return { is: "to agree", program: selected };
  }
  return { is: "missing" };
}

function onPath({ path, folders }: Places): string[] {
  const isOutside = (folder: string) =>
    isAbsolute(folder) && folders.every((workspace) => relative(workspace, folder).startsWith(".."));
  return path
    .split(delimiter)
    .filter(isOutside)
    .map((folder) => join(folder, SERVER));
}

/** The commands that make the private environment. */
export function installCommands(python: string, own: string, wheel: string): [string, string[]][] {
  return [
    [python, ["-m", "venv", "--clear", own]],
    [join(own, "bin", "python"), ["-m", "pip", "install", "--disable-pip-version-check", wheel]],
  ];
}

/** The same for a shell. */
export function asShell(commands: readonly [string, readonly string[]][]): string {
  const quoted = (word: string) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`);
  return commands.map(([program, words]) => [program, ...words].map(quoted).join(" ")).join(" && ");
}

/** Interpreters to try, best first. */
export const PYTHONS = ["python3.13", "python3.12", "python3.11", "python3"] as const;
export const PYTHON_CHECK = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))";
