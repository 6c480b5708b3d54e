/** Says that nobody answers: in one line for a short outage, and in one a minute for a long one. */
export declare class Outage {
    #private;
    constructor(log: (line: string) => void);
    /** Is told of what failed and is tried again. */
    failed(what: string, why: string): void;
}
