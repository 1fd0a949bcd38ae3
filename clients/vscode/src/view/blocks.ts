// A growing Markdown text, cut where the cut cannot change what stands before it, so that each frame renders little.

/** The most characters of one block. A longer one is cut at a line, or in a line where there is none. */
export const BLOCK_LIMIT = 16_384;
/** The most characters of one text that are shown. */
export const TEXT_LIMIT = 2_000_000;

const FENCE = /^ {0,3}(`{3,}|~{3,})(.*)$/;
const INDENTED_OR_EMPTY = /^\s/;

export class Blocks {
  /** The text of the block that may still grow. */
  open = "";
  private fence = "";
  private opener = "";
  private scanned = 0;
  private length = 0;
  private isAfterBlank = false;

  /** Add text; the blocks that are complete by it, in order. */
  push(text: string): string[] {
    const room = Math.max(0, TEXT_LIMIT - this.length);
    this.length += text.length;
    this.open += text.slice(0, room);
    const done: string[] = [];
    for (;;) {
      const end = this.open.indexOf("\n", this.scanned);
      if (end < 0) break;
      this.line(this.open.slice(this.scanned, end), end + 1, done);
    }
    while (this.open.length > BLOCK_LIMIT) {
      this.cut(this.scanned > 0 && this.scanned <= BLOCK_LIMIT ? this.scanned : BLOCK_LIMIT, done);
    }
    return done;
  }

  /** How much is not shown. */
  get hidden(): number {
    return Math.max(0, this.length - TEXT_LIMIT);
  }

  private line(line: string, next: number, done: string[]): void {
    const start = this.scanned;
    if (start > BLOCK_LIMIT / 2 && next > BLOCK_LIMIT) {
      this.cut(start, done);
      this.scanned = 0;
      return;
    }
    if (this.fence === "" && this.isAfterBlank && line !== "" && !INDENTED_OR_EMPTY.test(line)) {
      done.push(this.open.slice(0, start));
      this.open = this.open.slice(start);
      this.isAfterBlank = false;
      this.scanned = 0;
      return;
    }
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
      [this.fence, this.opener] = [marks, `${line}\n`];
    }
  }

  /** Cut by force; a fence goes on in the next block. */
  private cut(at: number, done: string[]): void {
    const isHighSurrogate = /[\ud800-\udbff]/.test(this.open.charAt(at - 1));
    const end = isHighSurrogate ? at - 1 : at;
    done.push(this.open.slice(0, end));
    this.open = this.opener + this.open.slice(end);
    this.scanned = this.opener.length;
    this.isAfterBlank = false;
  }
}
