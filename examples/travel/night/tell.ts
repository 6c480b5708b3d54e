// The office hears of the night, in TypeScript: a line a night, where a real one sends a mail.
//
//   MAKEGOOD_URL=http://127.0.0.1:4800/makegood node tell.js

import {Agent, run} from "makegood-agent";

interface Night {
  day: string;
  found: {paid: number; differ: string[]};
}

await run(new Agent("mail").do<Night>("tell", async ({day, found}, attempt) => {
  // A mail service is given the key, so that a second attempt sends no second mail.
  console.log(`${day}: ${found.paid} trips paid, ${found.differ.length} differ (${attempt.task.key})`);
  return {told: `${found.paid} paid, ${found.differ.length} differ`};
}));
