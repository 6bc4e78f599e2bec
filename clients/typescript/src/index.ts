// Recollect, durable memory for AI agents: a client of `recollect serve`.

import {
  AgentsClient,
  DocumentsClient,
  FactsClient,
  GenerationsClient,
  ServerClient,
  SessionClient,
  SessionsClient,
  SpaceClient,
  type Session as SessionState,
  type SpaceSessionBody,
} from "./generated.js";
import { type Bound, type CallOptions, type RecollectOptions, Transport } from "./transport.js";

/** A store behind a server. Nothing is asked until a verb is called. */
export class Recollect extends ServerClient {
  constructor(options: RecollectOptions) {
    super(new Transport(options));
  }

  /** A space, the tenant boundary. The key has to see it. */
  space(name = "default"): Space {
    return new Space(this.transport, { space: name, session: "" });
  }
}

/** One tenant: its sessions, facts, documents and generations, and what is recalled from them. */
export class Space extends SpaceClient {
  readonly facts: FactsClient;
  readonly documents: DocumentsClient;
  readonly sessions: SessionsClient;
  readonly generations: GenerationsClient;
  readonly agents: AgentsClient;

  constructor(transport: Transport, bound: Bound) {
    super(transport, bound);
    this.facts = new FactsClient(transport, bound);
    this.documents = new DocumentsClient(transport, bound);
    this.sessions = new SessionsClient(transport, bound);
    this.generations = new GenerationsClient(transport, bound);
    this.agents = new AgentsClient(transport, bound);
  }

  /** The conversation behind a stable key, created if it is new. */
  async session(
    key: SpaceSessionBody["key"],
    more: Omit<SpaceSessionBody, "key"> = {},
    options: CallOptions = {},
  ): Promise<Session> {
    const state = await this.openSession({ ...more, key }, options);
    return new Session(this.transport, { ...this.bound, session: state.id }, state);
  }
}

/** A conversation: append to it, mark it, rotate it. `state` is as it was when it was opened. */
export class Session extends SessionClient {
  constructor(
    transport: Transport,
    bound: Bound,
    readonly state: SessionState,
  ) {
    super(transport, bound);
  }

  get id(): string {
    return this.state.id;
  }
}

export { ConnectionError, RecollectError } from "./transport.js";
export type { CallOptions, ReadOptions, RecollectOptions } from "./transport.js";
export type * from "./generated.js";
