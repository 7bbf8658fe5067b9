/** Answers and rules as JSON: docs/control-api.md describes them. */
export type Json = Record<string, unknown>;

export interface Rule {
    name?: string;
    from?: Json;
    when?: Json;
    times?: number;
    for?: string;
    do: unknown;
}

export interface Wait {
    from?: Json;
    when?: Json;
    sent?: Json;
    closed?: 'any' | 'eof' | 'fin' | 'rst';
    since?: number;
    timeout?: string;
}

export interface Injected {
    rule?: { id: number; name?: string; waitsFor: string; does: string; met: number; left?: number };
    streams?: number[];
    nextRecord: number;
}

export interface Found {
    record: Json;
    line: string;
    stream?: number;
    nextRecord: number;
}

export interface Verdict {
    outcome: 'pass' | 'mismatch' | 'nothing';
    clients: { client: string; requests: number; contradictions: { check: string; sentence: string; proof: string }[] }[];
}

export class Refused extends Error {
    readonly status: number;
    readonly body: Json;
}

export class Violations extends Error {
    readonly verdict: Verdict;
}

export class Control {
    constructor(url: string, token: string);
    readonly url: string;
    readonly token: string;
    state(): Promise<Json & { nextRecord: number; resourceVersion: string }>;
    streams(): Promise<Json[]>;
    rules(): Promise<Json[]>;
    addRule(rule: Rule | string): Promise<Injected>;
    removeRules(): Promise<Json[]>;
    removeRule(id: number): Promise<Json>;
    waitFor(wait: Wait | string): Promise<Found>;
    trace(since?: number): Promise<Json[]>;
    verdict(): Promise<Verdict>;
    reset(): Promise<Json>;
}

export class FakeApiserver implements AsyncDisposable {
    private constructor();
    static start(...args: string[]): Promise<FakeApiserver>;
    readonly url: string;
    readonly kubeconfig: string;
    readonly control: Control;
    inject(rule: Rule | string): Promise<Injected>;
    expire(from?: Json): Promise<Injected>;
    wait(condition: Wait): Promise<Found>;
    reset(): Promise<Json>;
    verdict(): Promise<Verdict>;
    expectNoViolations(): Promise<void>;
    log(): string;
    stop(): Promise<void>;
    [Symbol.asyncDispose](): Promise<void>;
}
