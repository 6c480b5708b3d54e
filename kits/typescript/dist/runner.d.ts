import type { Agent } from "./agent.js";
import type { Door } from "./door.js";
import type { Secrets } from "./secrets.js";
export interface RunOptions {
    /** How many attempts run at once, 1 to 1000; 64 unless said. */
    concurrency?: number;
    /** How many milliseconds those that run may go on after stop; 25,000 unless said. */
    patienceMs?: number;
    /** Gives the value of a secret by its name; MAKEGOOD_SECRET_NAME of the environment unless said. */
    secrets?: Secrets;
    /** Hears of what goes wrong, and never of payloads; standard error unless said. */
    log?: (line: string) => void;
}
/** Runs one agent. What has not stopped when patience has run out ends in silence, and is tried again elsewhere. */
export declare class Runner {
    #private;
    constructor(agent: Agent, door: Door, options?: RunOptions);
    /** Takes tasks until stop is called, and resolves when nothing runs any more, or patience has run out. */
    run(): Promise<void>;
    /** Takes no more tasks, and lets run resolve when those that run are done. */
    stop(): void;
}
/** MAKEGOOD_URL (and MAKEGOOD_TOKEN): an engine. MAKEGOOD_TABLE and MAKEGOOD_QUEUE_PREFIX (and MAKEGOOD_PAYLOADS): a stack on AWS. */
export declare function doorFromEnvironment(): Promise<Door>;
/**
 * Runs an agent until SIGTERM or SIGINT, then lets what runs end, for patienceMs. A second signal ends the process. Without
 * a door the environment says which; see doorFromEnvironment.
 */
export declare function run(agent: Agent, door?: Door, options?: RunOptions): Promise<void>;
