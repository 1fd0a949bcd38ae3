// The only importer of `vscode`: what the rest needs of the editor, in plain data and without decisions.
import * as vscode from "vscode";
import type { ActiveDocument, Diagnostic, DocumentVersion } from "./protocol.gen";
import { word } from "./settings";
import { withoutLinks } from "./view/inert";

export interface Disposable {
  dispose(): void;
}

export interface Button {
  readonly label: string;
  readonly run: () => unknown;
}

export interface Choice<T> {
  readonly label: string;
  readonly description?: string;
  readonly detail?: string;
  readonly value: T;
}

export interface Row {
  readonly id: string;
  readonly label: string;
  readonly description?: string;
  readonly tooltip?: string;
  readonly icon?: string;
  /** `viewItem` in the menus of package.json. */
  readonly kind: string;
  readonly open?: boolean;
  readonly children?: readonly Row[];
  readonly command?: { readonly id: string; readonly title: string };
}

export interface Cancellation {
  readonly isCancellationRequested: boolean;
  readonly onCancellationRequested: (listener: () => void) => Disposable;
}

export interface Canceller extends Disposable {
  readonly token: Cancellation;
  cancel(): void;
}

export interface PageView {
  send(message: unknown): void;
  reveal(): Promise<void>;
}

export interface PageHost {
  html(page: { readonly script: string; readonly style: string; readonly source: string }): string;
  hear(message: unknown): void;
}

/** The conversation to go on with. */
type Known = string | undefined;

export interface Participant {
  ask(prompt: string, known: Known, reply: ParticipantReply, stop: Cancellation): Promise<Known>;
}

export interface ParticipantReply {
  markdown(text: string): void;
  progress(text: string): void;
}

export interface Log {
  info(text: string): void;
  error(text: string): void;
  show(): void;
}

export type Editor = ReturnType<typeof createEditor>;

const CHOICES = { matchOnDescription: true, matchOnDetail: true };

/** The editor, and what belongs to this extension in it. Everything that is registered ends with `context`. */
export function createEditor(context: vscode.ExtensionContext) {
  const keep = <T extends Disposable>(thing: T): T => {
    context.subscriptions.push(thing);
    return thing;
  };
  return {
    storage: context.globalStorageUri.fsPath,
    extension: context.extensionPath,
    log: keep(vscode.window.createOutputChannel("Lyma", { log: true })),
    keep,
    ...createWindow(keep),
    ...createDocuments(keep),
    ...createViews(context, keep),
    ...createMemory(context),
  };
}

function createWindow(keep: <T extends Disposable>(thing: T) => T) {
  const say =
    (show: (message: string, ...labels: string[]) => Thenable<string | undefined>) =>
    async (message: string, ...buttons: Button[]): Promise<unknown> => {
      const chosen = await show(withoutLinks(message), ...buttons.map((button) => button.label));
      return buttons.find((button) => button.label === chosen)?.run();
    };
  return {
    info: say(vscode.window.showInformationMessage),
    warn: say(vscode.window.showWarningMessage),
    fail: say(vscode.window.showErrorMessage),
    /** The label that was pressed; undefined where the dialog was dismissed. */
    async confirm(message: string, detail: string, ...labels: string[]): Promise<string | undefined> {
      return vscode.window.showWarningMessage(message, { modal: true, detail }, ...labels);
    },
    async input(title: string, prompt: string, value = ""): Promise<string | undefined> {
      return vscode.window.showInputBox({ title, prompt, value, ignoreFocusOut: true });
    },
    async pick<T>(title: string, choices: readonly Choice<T>[]): Promise<T | undefined> {
      return (await vscode.window.showQuickPick(choices, { title, placeHolder: title, ...CHOICES }))?.value;
    },
    command(id: string, handler: (argument?: unknown) => unknown): void {
      keep(vscode.commands.registerCommand(id, handler));
    },
    async run(command: string, ...argument: unknown[]): Promise<unknown> {
      return vscode.commands.executeCommand(command, ...argument);
    },
    /** Run a program in a terminal; its exit status, undefined where there is none. */
    async terminal(name: string, program: string, argument: string[]): Promise<number | undefined> {
      const made = vscode.window.createTerminal({ name, shellPath: program, shellArgs: argument });
      made.show();
      const closed = new Promise<void>((resolve) => {
        keep(vscode.window.onDidCloseTerminal((each) => each === made && resolve()));
      });
      return closed.then(() => made.exitStatus?.code);
    },
    async copy(text: string): Promise<void> {
      await vscode.env.clipboard.writeText(text);
    },
    async progress<T>(title: string, task: (report: (text: string) => void) => Promise<T>): Promise<T> {
      const options = { location: vscode.ProgressLocation.Notification, title };
      return vscode.window.withProgress(options, (progress) => task((text) => progress.report({ message: text })));
    },
    statusItem(name: string, command: string) {
      const item = keep(vscode.window.createStatusBarItem("lyma.status", vscode.StatusBarAlignment.Right, 90));
      Object.assign(item, { name, command });
      return (text: string, tooltip: string): void => {
        Object.assign(item, { text, tooltip, accessibilityInformation: { label: `Lyma: ${tooltip}` } });
        item.show();
      };
    },
    canceller: (): Canceller => new vscode.CancellationTokenSource(),
  };
}

function createDocuments(keep: <T extends Disposable>(thing: T) => T) {
  return {
    folders: (): string[] => (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath),
    active(): ActiveDocument | undefined {
      const editor = vscode.window.activeTextEditor;
      if (editor === undefined || !isText(editor.document.uri)) {
        return undefined;
      }
      const { uri, version } = editor.document;
      const selections = editor.selections.map(({ start, end }) => ({ start: plain(start), end: plain(end) }));
      return { uri: uri.toString(), version, selections };
    },
    visible: (): DocumentVersion[] =>
      vscode.window.visibleTextEditors
        .map((editor) => editor.document)
        .filter(({ uri }) => isText(uri))
        .map(({ uri, version }) => ({ uri: uri.toString(), version })),
    diagnostics: (uri: string): Diagnostic[] =>
      vscode.languages
        .getDiagnostics(vscode.Uri.parse(uri))
        .map(({ range, message, severity, source }) => ({
          uri,
          range: { start: plain(range.start), end: plain(range.end) },
          message,
          severity: severity + 1,
          source: source ?? null,
        })),
    async find(glob: string, most: number): Promise<string[]> {
      const found = await vscode.workspace.findFiles(glob, "**/node_modules/**", most);
      return found.map((uri) => uri.toString());
    },
    relative: (uri: string): string => vscode.workspace.asRelativePath(vscode.Uri.parse(uri)),
    async open(uri: string): Promise<void> {
      await vscode.window.showTextDocument(vscode.Uri.parse(uri, true), { preview: true });
    },
    async show(text: string, language: string): Promise<void> {
      await vscode.window.showTextDocument(await vscode.workspace.openTextDocument({ content: text, language }));
    },
    /** Read-only documents `scheme:path`; the result makes the URI of a path. */
    provide(scheme: string, provideText: (path: string) => string) {
      const provider = { provideTextDocumentContent: (uri: vscode.Uri) => provideText(uri.path) };
      keep(vscode.workspace.registerTextDocumentContentProvider(scheme, provider));
      return { uri: (path: string): string => vscode.Uri.from({ scheme, path }).toString() };
    },
    async close(uri: string): Promise<void> {
      const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
      const isIt = ({ input }: vscode.Tab) => input instanceof vscode.TabInputText && input.uri.toString() === uri;
      await vscode.window.tabGroups.close(tabs.filter(isIt));
    },
  };
}

function createViews(context: vscode.ExtensionContext, keep: <T extends Disposable>(thing: T) => T) {
  return {
    /** The webview `id`: pages come and go, `host` stays. */
    page(id: string, host: PageHost): PageView {
      let view: vscode.WebviewView | undefined;
      const asset = (name: string) => vscode.Uri.joinPath(context.extensionUri, "dist", name);
      const resolveWebviewView = (fresh: vscode.WebviewView) => {
        view = fresh;
        const { webview } = fresh;
        webview.options = { enableScripts: true, localResourceRoots: [asset("")] };
        webview.onDidReceiveMessage((message: unknown) => host.hear(message));
        fresh.onDidDispose(() => (view = undefined));
        const local = (name: string) => webview.asWebviewUri(asset(name)).toString();
        webview.html = host.html({ script: local("view.js"), style: local("view.css"), source: webview.cspSource });
      };
      const options = { webviewOptions: { retainContextWhenHidden: true } };
      keep(vscode.window.registerWebviewViewProvider(id, { resolveWebviewView }, options));
      return {
        send(message) {
          void view?.webview.postMessage(message);
        },
        async reveal() {
          await vscode.commands.executeCommand(`${id}.focus`);
        },
      };
    },
    /** The tree `id`; the result shows it anew. `opened` hears that it came into sight. */
    tree(id: string, rows: () => Promise<readonly Row[]>, opened: () => void): () => void {
      const changed = keep(new vscode.EventEmitter<Row | undefined>());
      const treeDataProvider: vscode.TreeDataProvider<Row> = {
        onDidChangeTreeData: changed.event,
        getChildren: async (row) => [...(row === undefined ? await rows() : (row.children ?? []))],
        getTreeItem: asTreeItem,
      };
      const view = keep(vscode.window.createTreeView(id, { treeDataProvider, showCollapseAll: true }));
      view.onDidChangeVisibility(({ visible }) => {
        if (visible) opened();
      });
      return () => changed.fire(undefined);
    },
    /** The native chat participant; false where this editor has no such thing. */
    participant(id: string, participant: Participant): boolean {
      const chat = (vscode as Partial<typeof vscode>).chat;
      if (typeof chat?.createChatParticipant !== "function") {
        return false;
      }
      const handler: vscode.ChatRequestHandler = async (request, { history }, stream, token) => {
        const last = history.at(-1);
        const known: unknown = last instanceof vscode.ChatResponseTurn ? last.result.metadata?.session : undefined;
        const reply = {
          markdown: (text: string) => stream.markdown(text),
          progress: (text: string) => stream.progress(text),
        };
        const session = await participant.ask(request.prompt, word(known), reply, token);
        return { metadata: { session } };
      };
      const made = keep(chat.createChatParticipant(id, handler));
      made.iconPath = vscode.Uri.joinPath(context.extensionUri, "media", "lyma.svg");
      return true;
    },
  };
}

function createMemory(context: vscode.ExtensionContext) {
  return {
    /** A setting as the person has it: what a workspace says is not looked at. */
    setting(name: string): unknown {
      const found = vscode.workspace.getConfiguration("lyma").inspect(name);
      return found?.globalValue ?? found?.defaultValue;
    },
    onSetting(listener: () => void): void {
      const told = vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("lyma")) listener();
      });
      context.subscriptions.push(told);
    },
    recall: (name: string, where: "workspace" | "everywhere"): unknown =>
      (where === "workspace" ? context.workspaceState : context.globalState).get(name),
    async remember(name: string, value: unknown, where: "workspace" | "everywhere"): Promise<void> {
      await (where === "workspace" ? context.workspaceState : context.globalState).update(name, value);
    },
    /** The interpreter that the Python extension has selected, where that extension runs. */
    async python(): Promise<string | undefined> {
      const found = vscode.extensions.getExtension<PythonExtension>("ms-python.python");
      const api = found === undefined ? undefined : await found.activate();
      return api?.environments?.getActiveEnvironmentPath().path;
    },
  };
}

/** What is used of the API of the extension ms-python.python. */
interface PythonExtension {
  readonly environments?: { getActiveEnvironmentPath(): { readonly path: string } };
}

function asTreeItem(row: Row): vscode.TreeItem {
  const { TreeItemCollapsibleState: State } = vscode;
  const state = row.children === undefined ? State.None : row.open === false ? State.Collapsed : State.Expanded;
  const item = new vscode.TreeItem(row.label, state);
  Object.assign(item, { id: row.id, contextValue: row.kind });
  if (row.description !== undefined) item.description = row.description;
  if (row.tooltip !== undefined) item.tooltip = row.tooltip;
  if (row.icon !== undefined) item.iconPath = new vscode.ThemeIcon(row.icon);
  if (row.command !== undefined) {
    item.command = { command: row.command.id, title: row.command.title, arguments: [row] };
  }
  return item;
}

function isText(uri: vscode.Uri): boolean {
  return uri.scheme === "file" || uri.scheme === "untitled";
}

function plain({ line, character }: vscode.Position) {
  return { line, character };
}
