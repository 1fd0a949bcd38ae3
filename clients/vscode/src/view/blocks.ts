// A growing Markdown text, cut where the cut cannot change what stands before it, so that each frame renders little.

/** The most characters of one block. A longer one is cut at a line, or in a line where there is none. */
export const BLOCK_LIMIT = 8192;
/** The most lines of one block outside a fence: what a parser does for each line it does again for each quote around it. */
export const BLOCK_LINES = 200;
/** The most characters and lines of one text that are shown. */
export const TEXT_LIMIT = 2_000_000;
export const LINE_LIMIT = 60_000;

// A block that goes on with a fence begins with the fence's own line, so that line is kept short.
const FENCE = /^ {0,3}(`{3,50}(?!`)|~{3,50}(?!~))(.*)$/;
const INFO_LIMIT = 60;
const INDENTED_OR_EMPTY = /^\s/;

export class Blocks {
  /** The text of the block that may still grow. */
  open = "";
  private fence = "";
  private opener = "";
  private scanned = 0;
  private length = 0;
  private shown = 0;
  private lines = 0;
  private openLines = 0;
  private isAfterBlank = false;

  /** Add text; the blocks that are complete by it, in order. */
  push(text: string): string[] {
    const fresh = this.room(text);
    this.length += text.length;
    this.shown += fresh.length;
    this.open += fresh;
    const done: string[] = [];
    for (;;) {
      const end = this.open.indexOf("\n", this.scanned);
      if ((end < 0 ? this.open.length : end + 1) > BLOCK_LIMIT) {
        this.cut(this.scanned > BLOCK_LIMIT / 2 ? this.scanned : BLOCK_LIMIT, done);
      } else if (end < 0) {
        return done;
      } else {
        this.line(this.open.slice(this.scanned, end), end + 1, done);
      }
    }
  }

  /** How much is not shown. */
  get hidden(): number {
    return this.length - this.shown;
  }

  /** As much of `text` as there is room for. */
  private room(text: string): string {
    if (this.shown < this.length) return ""; // nothing after what is not shown
    let end = -1;
    for (; this.lines < LINE_LIMIT; this.lines += 1) {
      end = text.indexOf("\n", end + 1);
      if (end < 0) break;
    }
    const most = Math.max(0, TEXT_LIMIT - this.shown);
    return text.slice(0, end < 0 ? most : Math.min(most, end + 1));
  }

  private line(line: string, next: number, done: string[]): void {
    const start = this.scanned;
    if (this.openLines >= BLOCK_LINES && this.fence === "") {
      this.cut(start, done);
      return;
    }
    if (this.fence === "" && this.isAfterBlank && line !== "" && !INDENTED_OR_EMPTY.test(line)) {
      done.push(this.open.slice(0, start));
      this.open = this.open.slice(start);
      this.isAfterBlank = false;
      this.scanned = this.openLines = 0;
      return;
    }
    this.openLines += 1;
    this.isAfterBlank = this.fence === "" && line.trim() === "";
    this.follow(line);
    this.scanned = next;
  }

  private follow(line: string): void {
    const found = FENCE.exec(line);
    const [marks, rest] = [found?.[1] ?? "", found?.[2] ?? ""];
    if (this.fence !== "") {
      if (marks.startsWith(this.fence) && rest.trim() === "") this.fence = this.opener = "";
    } else if (marks !== "" && !(marks.startsWith("`") && rest.includes("`"))) {
      [this.fence, this.opener] = [marks, `${marks}${rest.slice(0, INFO_LIMIT)}\n`];
    }
  }

  /** Cut by force; a fence goes on in the next block. */
  private cut(at: number, done: string[]): void {
    const isHighSurrogate = /[\ud800-\udbff]/.test(this.open.charAt(at - 1));
    const end = isHighSurrogate ? at - 1 : at;
    done.push(this.open.slice(0, end));
    this.open = this.opener + this.open.slice(end);
    this.scanned = this.opener.length;
    this.openLines = 0;
    this.isAfterBlank = false;
  }
}
