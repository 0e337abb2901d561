#!/usr/bin/env node
// A worker that never begins its work twice: an agent of Holdfast in Node.js.
//
//     agentd run --name w1 --role count -- node worker.mjs
//
// Takes tasks of its role, one after the other. A task's payload is the number of steps; each step
// adds its number to a sum, and is followed by a checkpoint. When this process dies, its successor
// finds the newest checkpoint and goes on behind it. Needs the file holdfast.mjs beside it and no
// package beyond the language.

import { setTimeout as sleep } from 'node:timers/promises';

import { Holdfast } from './holdfast.mjs';

const stepSeconds = Number(process.env.STEP_SECONDS ?? '0.1');
const agentd = new Holdfast({ patience: Infinity });

// What the work has come to, as the newest checkpoint that is whole has it.
async function restore(id) {
    const kept = await agentd.load(id);
    if (kept === null) return { step: 0, sum: 0, lives: [] };
    const state = JSON.parse(kept.data);
    console.log(`resume ${id} behind step ${state.step} (checkpoint ${kept.seq})`);
    return state;
}

async function work({ id, payload }) {
    const steps = Number(payload || '5');
    const state = await restore(id);
    state.lives.push(process.env.HOLDFAST_INCARNATION);
    while (state.step < steps) {
        await sleep(stepSeconds * 1000);
        state.step += 1;
        state.sum += state.step;
        await agentd.save(id, JSON.stringify(state));
        await agentd.progress(id, (100 * state.step) / steps, `step ${state.step}`);
        console.log(`${id} step ${state.step}`);
    }
    await agentd.complete(id, JSON.stringify(state));
    console.log(`completed ${id}`);
}

process.on('SIGTERM', () => process.exit(0));
try {
    await agentd.state('ready');
    for await (const task of agentd.tasks()) await work(task);
} catch (error) {
    console.error(`${error.code}: ${error.message}`);
    process.exit(1);
}
