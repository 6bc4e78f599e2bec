// The way to the server: requests, retries, errors, pages and events.

import type { ProblemDetails } from "./generated.js";

export interface ReadOptions {
  /** Cancels the request. */
  signal?: AbortSignal;
}

export interface CallOptions extends ReadOptions {
  /** Makes a repeated request the same request. Made up for you where the server takes one. */
  idempotencyKey?: string;
  /** The version that a page has to have: a number; 0 or "none": the page has to be new. */
  expectedVersion?: number | "none";
}

export interface RecollectOptions {
  /** Where `recollect serve` listens, such as http://127.0.0.1:8400. */
  url: string;
  /** A key made with `recollect keys create`. */
  key: string;
  /** How often a request that can be repeated is tried again. Default: 2. */
  retries?: number;
  /** How long one try may take. Default: 60,000; events may take as long as they like. */
  timeoutMs?: number;
  /** What sends requests. Default: the global fetch. */
  fetch?: typeof fetch;
}

export interface Call {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  path: string;
  query?: { [name: string]: unknown };
  body?: unknown;
  takesKey?: boolean;
}

export interface Bound {
  space: string;
  session: string;
}

/** What the server refused, as it says it: what is wrong, who can mend it, whether a retry helps. */
export class RecollectError extends Error {
  constructor(readonly problem: ProblemDetails) {
    super(problem.detail || problem.title);
    this.name = "RecollectError";
  }

  get status(): number {
    return this.problem.status;
  }

  /** The kind of error, such as "NotFound" or "StaleVersion". */
  get kind(): string {
    return this.problem.type.slice(this.problem.type.lastIndexOf(":") + 1);
  }

  get retryHelps(): boolean {
    return this.problem.retry_helps;
  }
}

/** The server could not be reached, or did not answer in time. */
export class ConnectionError extends Error {
  constructor(url: string, options: ErrorOptions) {
    super(`no answer from ${url}; is recollect serve running there?`, options);
    this.name = "ConnectionError";
  }
}

/** A path whose values are escaped. */
export function at(parts: TemplateStringsArray, ...values: (string | number)[]): string {
  return String.raw({ raw: parts }, ...values.map((value) => encodeURIComponent(value)));
}

const RETRIED = new Set([429, 502, 503, 504]);
const PAUSE_MS = 200;
const PAUSE_MS_MAX = 20_000;

export class Transport {
  readonly #url: string;
  readonly #key: string;
  readonly #retries: number;
  readonly #timeoutMs: number;
  readonly #fetch: typeof fetch;

  constructor(options: RecollectOptions) {
    this.#url = options.url.replace(/\/+$/, "");
    this.#key = options.key;
    this.#retries = options.retries ?? 2;
    this.#timeoutMs = options.timeoutMs ?? 60_000;
    this.#fetch = options.fetch ?? fetch;
  }

  async json<Answer>(call: Call, options: CallOptions): Promise<Answer> {
    return (await (await this.#answered(call, options)).json()) as Answer;
  }

  async text(call: Call, options: CallOptions): Promise<string> {
    return (await this.#answered(call, options)).text();
  }

  /** Every item of every page, from a cursor on. */
  async *each<Item>(
    from: string | undefined,
    page: (cursor: string | undefined) => Promise<{ items: Item[]; next: string | null }>,
  ): AsyncGenerator<Item> {
    let cursor: string | undefined | null = from;
    do {
      const answer = await page(cursor);
      yield* answer.items;
      cursor = answer.next;
    } while (cursor);
  }

  /** Server-sent events, parsed. Ends when the server closes the stream or the signal aborts. */
  async *events<Event>(call: Call, options: ReadOptions): AsyncGenerator<Event> {
    const response = await this.#answered(call, options, Infinity);
    const decoder = new TextDecoder();
    let rest = "";
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      rest += decoder.decode(chunk, { stream: true });
      const blocks = rest.split(/\r?\n\r?\n/);
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const lines = block.split(/\r?\n/).filter((line) => line.startsWith("data:"));
        if (lines.length) yield JSON.parse(lines.map((line) => line.slice(5)).join("\n")) as Event;
      }
    }
  }

  async #answered(call: Call, options: CallOptions, timeoutMs = this.#timeoutMs): Promise<Response> {
    const headers = this.#headers(call, options);
    const isRepeatable = call.method !== "POST" && call.method !== "PATCH";
    const tries = isRepeatable || "Idempotency-Key" in headers ? this.#retries : 0;
    for (let left = tries; ; left--) {
      const response = await this.#sent(call, headers, options, timeoutMs, left > 0);
      if (response?.ok) return response;
      if (response && !(left > 0 && RETRIED.has(response.status))) throw await refusal(response);
      const asked = Number(response?.headers.get("Retry-After") ?? NaN) * 1000;
      const pause = Number.isFinite(asked) ? asked : PAUSE_MS * 2 ** (tries - left);
      await passed(Math.min(pause, PAUSE_MS_MAX), options.signal);
    }
  }

  /** An answer; none if the server could not be reached and another try is to be made. */
  async #sent(
    call: Call,
    headers: { [name: string]: string },
    options: CallOptions,
    timeoutMs: number,
    isTriedAgain: boolean,
  ): Promise<Response | undefined> {
    const signals = [options.signal, Number.isFinite(timeoutMs) ? AbortSignal.timeout(timeoutMs) : undefined];
    try {
      return await this.#fetch(this.#url + call.path + asQuery(call.query), {
        method: call.method,
        headers,
        body: call.body === undefined ? null : JSON.stringify(call.body),
        signal: AbortSignal.any(signals.filter((signal) => signal !== undefined)),
      });
    } catch (error) {
      if (options.signal?.aborted) throw error;
      if (isTriedAgain) return undefined;
      throw new ConnectionError(this.#url, { cause: error });
    }
  }

  #headers(call: Call, options: CallOptions): { [name: string]: string } {
    const headers: { [name: string]: string } = { Authorization: `Bearer ${this.#key}` };
    if (call.body !== undefined) headers["Content-Type"] = "application/json";
    if (call.takesKey) headers["Idempotency-Key"] = options.idempotencyKey ?? crypto.randomUUID();
    const version = options.expectedVersion;
    if (version === "none" || version === 0) headers["If-None-Match"] = "*";
    else if (version !== undefined) headers["If-Match"] = `"${version}"`;
    return headers;
  }
}

/** What has verbs: a server, a space, its facts … */
export class Resource {
  constructor(
    protected readonly transport: Transport,
    protected readonly bound: Bound = { space: "", session: "" },
  ) {}
}

function asQuery(query: { [name: string]: unknown } | undefined): string {
  const pairs = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null);
  const text = new URLSearchParams(pairs.map(([name, value]) => [name, String(value)])).toString();
  return text && `?${text}`;
}

async function refusal(response: Response): Promise<RecollectError> {
  const text = await response.text();
  try {
    return new RecollectError(JSON.parse(text) as ProblemDetails);
  } catch {
    const title = response.statusText || "The answer is not Recollect's";
    const problem = { type: "about:blank", title, status: response.status, detail: text.slice(0, 500) };
    return new RecollectError({ ...problem, mended_by: "operator", retry_helps: RETRIED.has(response.status) });
  }
}

function passed(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}
