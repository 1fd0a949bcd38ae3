// The page of the chat view: everything local, one script by its nonce, nothing else allowed.
import { randomBytes } from "node:crypto";

export interface Assets {
  readonly script: string;
  readonly style: string;
  /** What the editor calls its own resources. */
  readonly source: string;
}

export function pageHtml({ script, style, source }: Assets, nonce = randomBytes(16).toString("base64")): string {
  const policy = `default-src 'none'; style-src ${source}; script-src 'nonce-${nonce}'; base-uri 'none'; form-action 'none'`;
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta http-equiv="Content-Security-Policy" content="${policy}" />
    <meta name="viewport" content="width=device-width" />
    <link rel="stylesheet" href="${style}" />
    <title>Lyma</title>
  </head>
  <body>
    <main id="log" role="log" aria-label="Conversation" tabindex="0"><div id="turns"></div></main>
    <p id="status" role="status"></p>
    <form id="form">
      <label class="unseen" for="prompt">Ask Lyma</label>
      <textarea id="prompt" rows="3" placeholder="Ask Lyma" aria-describedby="keys"></textarea>
      <div class="bar">
        <span id="keys">Enter asks, Shift+Enter breaks the line</span>
        <button type="button" id="stop" hidden>Stop</button>
        <button type="submit" id="send">Ask</button>
      </div>
    </form>
    <script nonce="${nonce}" src="${script}"></script>
  </body>
</html>`;
}
