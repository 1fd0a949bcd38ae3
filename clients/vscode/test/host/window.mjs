// A window of VS Code in a headless Chromium: what a person does in it, one function each.
import { chromium } from "playwright-core";

const ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];

export async function openWindow(given) {
  const { url, folder, browser, shots, scheme, width = 1280, height = 860 } = given;
  const program = await chromium.launch({ executablePath: browser, args: ARGUMENTS });
  const page = await program.newPage({ viewport: { width, height }, ...(scheme ? { colorScheme: scheme } : {}) });
  page.setDefaultTimeout(30_000);
  const suite = given.suite ? await prepareSuite(page, new URL(url).host, given.suite) : undefined;
  await page.goto(`${url}/?folder=${folder}`, { waitUntil: "domcontentloaded" });
  const window = new Window(page, program, shots);
  if (suite) await suite.ended;
  else await window.ready(!given.plain);
  return window;
}

/** Have the workbench run `suite` (an extension's folder and a module) in its extension host; resolved once it has ended.
 * The page's own configuration is edited, as @vscode/test-web does it. */
async function prepareSuite(page, authority, { extension, module }) {
  const uri = (path) => ({ $mid: 1, scheme: "vscode-remote", authority, path });
  const options = { extensions: [uri(extension)], extensionTestsPath: uri(module) };
  let end;
  const ended = new Promise((resolve) => (end = resolve));
  await page.exposeFunction("codeAutomationExit", (code) => end(code));
  await page.exposeFunction("codeAutomationLog", () => undefined);
  await page.addInitScript((added) => {
    const get = Element.prototype.getAttribute;
    Element.prototype.getAttribute = function (name) {
      const value = get.call(this, name);
      if (name !== "data-settings" || this.id !== "vscode-workbench-web-configuration" || !value) return value;
      const settings = JSON.parse(value);
      settings.developmentOptions = { ...settings.developmentOptions, ...added };
      return JSON.stringify(settings);
    };
  }, options);
  return { ended };
}

export class Window {
  constructor(page, program, shots) {
    Object.assign(this, { page, program, shots });
  }

  /** Wait until the workbench is there, and the extension in it. */
  async ready(extension = true) {
    await this.page.locator(".monaco-workbench .statusbar").waitFor();
    if (extension) await this.page.locator(".activitybar .action-label[aria-label^='Lyma']").waitFor();
  }

  /** What the chat view and the status bar say. */
  async seen() {
    const item = this.page.locator(".statusbar-item", { hasText: "Lyma" }).first();
    const bar = { text: await item.innerText(), label: await item.locator("a").first().getAttribute("aria-label") };
    return { text: await this.chat.locator("#log").innerText(), bar };
  }

  /** The inside of the chat view. */
  get chat() {
    return this.page.frameLocator("iframe.webview.ready").frameLocator("#active-frame");
  }

  /** Run a command by its title, as the palette finds it. */
  async command(title) {
    for (let attempt = 0; ; attempt += 1) {
      await this.page.keyboard.press("F1");
      const input = this.page.locator(".quick-input-widget input").first();
      await input.waitFor({ state: "visible" });
      await input.fill(`>${title}`);
      const row = this.page.locator(".quick-input-list .monaco-list-row", {
        has: this.page.getByText(title, { exact: true }),
      });
      try {
        await row.first().click({ timeout: 3000 });
        return;
      } catch (problem) {
        if (attempt === 10) throw problem;
        await this.page.keyboard.press("Escape"); // extensions are still being looked through
      }
    }
  }

  /** Type into the box that asks for something. */
  async answer(text) {
    const input = this.page.locator(".quick-input-widget:visible .quick-input-message").first();
    await input.waitFor();
    await this.page.locator(".quick-input-widget input").first().fill(text);
    await this.page.keyboard.press("Enter");
  }

  async pick(text) {
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: text }).first().click();
  }

  async ask(prompt) {
    await this.command("Lyma: Ask");
    await this.answer(prompt);
  }

  /** Wait until the chat view shows a text. */
  async shows(text, timeout = 30_000) {
    await this.chat.locator("#log", { hasText: text }).waitFor({ timeout });
  }

  async idle() {
    await this.chat.locator("#send:enabled").waitFor();
    await this.chat.locator("#stop[hidden]").waitFor({ state: "attached" });
  }

  async open(name) {
    await this.page.keyboard.press("Control+P");
    const input = this.page.locator(".quick-input-widget input").first();
    await input.waitFor({ state: "visible" });
    await input.fill(name);
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: name }).first().waitFor();
    await this.page.keyboard.press("Enter");
    await this.page.locator(".tab.active", { hasText: name.split("/").at(-1) }).waitFor();
  }

  /** The text that the active editor shows. */
  async editorText() {
    const lines = await this.page.locator(".editor-instance .view-line").allInnerTexts();
    return lines.join("\n").replaceAll("\u00a0", " ");
  }

  async editorShows(text) {
    await this.page.locator(".editor-instance .view-line", { hasText: text }).first().waitFor();
  }

  dialog() {
    return this.page.locator(".monaco-dialog-box");
  }

  async press(label) {
    await this.page.locator(".monaco-dialog-box .monaco-button", { hasText: label }).first().click();
    await this.dialog().waitFor({ state: "detached" });
  }

  async dismiss() {
    await this.page.keyboard.press("Escape");
    await this.dialog().waitFor({ state: "detached" });
  }

  toast(text) {
    return this.page.locator(".notification-toast", { hasText: text }).first();
  }

  async shot(name) {
    await this.page.screenshot({ path: `${this.shots}/${name}.png` });
  }

  async close() {
    await this.program.close();
  }
}
