import { Injected, Json, Operations, Rule, State, Verdict, Wait, WaitResult } from './operations.mjs';

export type * from './operations.mjs';

export class ControlError extends Error {
    readonly status: number;
    readonly body: Json;
}

export class Violations extends Error {
    readonly verdict: Verdict;
}

export class Control extends Operations {
    constructor(url: string, token: string);
    readonly url: string;
    readonly token: string;
}

export class FakeApiserver implements AsyncDisposable {
    private constructor();
    static start(...args: string[]): Promise<FakeApiserver>;
    readonly url: string;
    readonly kubeconfig: string;
    readonly control: Control;
    inject(rule: Rule | string): Promise<Injected>;
    expire(from?: Json): Promise<Injected>;
    wait(condition: Wait): Promise<WaitResult>;
    reset(): Promise<State>;
    verdict(): Promise<Verdict>;
    expectNoViolations(): Promise<void>;
    log(): string;
    stop(): Promise<void>;
    [Symbol.asyncDispose](): Promise<void>;
}

export class ScenariosFailed extends Error {
    readonly results: Json[];
}

export interface Scenarios {
    /** Files, folders or ids such as `gone/`; none plays all that are built in. */
    scenarios?: string[];
    /** Libraries whose known failures do not count, such as `client-node@1`. */
    libraries?: string[];
    /** File of known failures. */
    knownFailures?: string;
    /** Further arguments of `fake-apiserver run`. */
    arguments?: string[];
}

export function runScenarios(command: string[], options?: Scenarios): Promise<Json[]>;
