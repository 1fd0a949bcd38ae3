// Runs inside the real extension host, with the extension from its folder; SUITE_RESULT names the file of what was found.
const assert = require("node:assert/strict");
const fs = require("node:fs");
const vscode = require("vscode");

const extension = () => vscode.extensions.getExtension("lyma.lyma");
const texts = () => vscode.workspace.textDocuments.map((document) => document.getText());

// This module lies in the extension's folder, so it shares its API: what the extension registers can be had here.
const registered = {};
const create = vscode.chat?.createChatParticipant;
if (create) {
  vscode.chat.createChatParticipant = (id, handler) => {
    registered[id] = { handler, participant: create.call(vscode.chat, id, handler) };
    return registered[id].participant;
  };
}

/** Ask `@lyma` as the native chat does, after the turns that were before; `during` hears of what is said. */
async function askParticipant(prompt, history, during = () => undefined) {
  const said = [];
  const source = new vscode.CancellationTokenSource();
  const say = (kind) => (text) => {
    said.push([kind, text]);
    during(said, source);
  };
  const stream = { markdown: say("markdown"), progress: say("progress") };
  const { handler } = registered["lyma.participant"];
  const result = await handler({ prompt, command: undefined, references: [] }, { history }, stream, source.token);
  const turn = Object.assign(Object.create(vscode.ChatResponseTurn.prototype), { result, response: [] });
  return {
    result,
    turn,
    words: said
      .filter(([kind]) => kind === "markdown")
      .map(([, text]) => text)
      .join(""),
  };
}

const tests = {
  "nothing is active before it is asked for": () => {
    assert.ok(extension());
    assert.equal(extension().isActive, false);
  },
  "a command activates it and starts the server": async () => {
    await vscode.commands.executeCommand("lyma.status.show");
    assert.equal(extension().isActive, true);
    assert.ok(texts().some((text) => text.startsWith("# Lyma 0.")));
  },
  "@lyma answers in the native chat, goes on with its conversation, and begins anew in a new chat": async () => {
    const { participant } = registered["lyma.participant"];
    assert.match(participant.iconPath.path, /lyma\.svg$/);
    const first = await askParticipant("say apples", []);
    assert.equal(first.words, "you said: say apples[U+202B]");
    const { session } = first.result.metadata;
    assert.equal(typeof session, "string");
    const second = await askParticipant("say pears", [first.turn]);
    assert.equal(second.result.metadata.session, session);
    const other = await askParticipant("say plums", []);
    assert.notEqual(other.result.metadata.session, session);
  },
  "@lyma stops when the native chat is stopped": async () => {
    const stopped = await askParticipant("wait for it", [], (said, source) => {
      if (said.some(([, text]) => text.includes("still"))) source.cancel();
    });
    assert.match(stopped.words, /^still/);
    assert.equal(typeof stopped.result.metadata.session, "string");
  },
  "every command of package.json is there, and so are the server's own": async () => {
    const all = await vscode.commands.getCommands(true);
    const offered = extension().packageJSON.contributes.commands.map(({ command }) => command);
    for (const command of [...offered, "lyma.ask", "lyma.compile_agent"]) assert.ok(all.includes(command), command);
  },
  "a workspace cannot be given the setting": async () => {
    const settings = vscode.workspace.getConfiguration("lyma");
    await assert.rejects(settings.update("server.path", "/tmp/x", vscode.ConfigurationTarget.Workspace));
  },
  "an agent's document is read-only": async () => {
    const document = await vscode.workspace.openTextDocument(vscode.Uri.parse("lyma-agent:/x/1/agent.txt"));
    assert.equal(document.getText(), "This question is settled.\n");
    assert.notEqual(vscode.workspace.fs.isWritableFileSystem("lyma-agent"), true);
  },
  "the server sees what is not saved, and changes it so that undo works": async () => {
    const uri = vscode.Uri.joinPath(vscode.workspace.workspaceFolders[0].uri, "a.txt");
    const editor = await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri));
    await editor.edit((edit) => edit.insert(new vscode.Position(0, 0), "unsaved\n"));
    await vscode.commands.executeCommand("lyma.ask", "change it");
    const shows = (text) => () => (editor.document.getText() === text ? [text] : []);
    assert.equal(editor.document.getText(), "unsaved\none\n2 😀\n");
    const isTranscript = ({ document }) => document.uri.path.includes("/transcripts/");
    await until("transcript", () => vscode.window.visibleTextEditors.filter(isTranscript));
    await vscode.window.showTextDocument(editor.document);
    await until("focus", () => [vscode.window.activeTextEditor].filter((each) => each?.document === editor.document));
    await vscode.commands.executeCommand("undo");
    await until("undo", shows("unsaved\none\ntwo\n"));
    assert.equal(fs.readFileSync(uri.fsPath, "utf8"), "one\ntwo\n");
  },
  "an agent.toml gets diagnostics and code lenses from the server": async () => {
    const folder = vscode.workspace.workspaceFolders[0].uri;
    const show = async (name) => {
      const uri = vscode.Uri.joinPath(folder, name);
      await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri));
      return uri;
    };
    const wrong = await show(".lyma/agents/wrong/agent.toml");
    await until("diagnostics", () => vscode.languages.getDiagnostics(wrong));
    const sound = await show(".lyma/agents/tidy/agent.toml");
    const lenses = await until("lenses", () =>
      vscode.commands.executeCommand("vscode.executeCodeLensProvider", sound, 9),
    );
    assert.ok(lenses.some((lens) => lens.command?.command === "lyma.compile_agent"));
  },
};

async function until(what, look) {
  for (let attempt = 0; attempt < 200; attempt += 1) {
    const found = await look();
    if (found?.length > 0) return found;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`no ${what} came`);
}

exports.run = async () => {
  const found = {};
  for (const [name, test] of Object.entries(tests)) {
    try {
      await test();
      found[name] = "ok";
    } catch (problem) {
      found[name] = String(problem?.stack ?? problem);
    }
  }
  fs.writeFileSync(process.env.SUITE_RESULT, JSON.stringify(found));
};
