// Text from elsewhere, made harmless to look at: what would move, hide or reorder other text is shown by name.

// Control characters but tab and line feed; C1; marks that hide or reorder text; line separators; tags; private interlinear marks.
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;
// The joiner inside an emoji is part of a letter.
const JOINED = /(\p{Extended_Pictographic}\ufe0f?)\u200d(?=\p{Extended_Pictographic})/gu;
const KEPT = "\ue000";

/** `text` with carriage returns before line feeds dropped, and everything invisible shown. */
export function inert(text: string): string {
  const plain = text.replaceAll("\r\n", "\n").replaceAll(KEPT, "\ufffd");
  const joined = plain.includes("\u200d") ? plain.replace(JOINED, `$1${KEPT}`) : plain;
  return joined.replace(HIDDEN, name).replaceAll(KEPT, "\u200d");
}

function name(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  return `[U+${code.toString(16).toUpperCase().padStart(4, "0")}]`;
}

/** The same words without links: a notification makes `[words](command:id)` a button that runs the command. */
export function withoutLinks(text: string): string {
  return text.replaceAll("](", "] (");
}

/** One line of at most `most` characters. */
export function oneLine(text: string, most = 200): string {
  const line = inert(text).replace(/\s+/g, " ").trim();
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}
