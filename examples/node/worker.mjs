#!/usr/bin/env node
// A worker that never begins its work twice: an agent of Holdfast in Node.js.
//
//     agentd run --name w1 --role count -- node worker.mjs
//
// Takes tasks of its role, one after the other. A task's payload is the number of steps; each step
// adds its number to a sum, and is followed by a checkpoint. When this process dies, its successor
// finds the newest checkpoint and goes on behind it. Needs no package beyond the language.

import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const { HOLDFAST_SOCKET, HOLDFAST_TOKEN, HOLDFAST_INCARNATION } = process.env;
const stepSeconds = Number(process.env.STEP_SECONDS ?? '0.1');

// One request over the Unix socket that agentd has made for this agent.
function request(method, path, body) {
    const bytes = Buffer.isBuffer(body);
    const data = body === undefined || bytes ? body : Buffer.from(JSON.stringify(body));
    const headers = { Authorization: `Bearer ${HOLDFAST_TOKEN}` };
    if (data !== undefined) {
        headers['Content-Type'] = bytes ? 'application/octet-stream' : 'application/json';
        headers['Content-Length'] = data.length;
    }
    return new Promise((resolve, reject) => {
        const call = http.request(
            { socketPath: HOLDFAST_SOCKET, method, path, headers, timeout: 120_000 },
            (response) => {
                const parts = [];
                response.on('data', (part) => parts.push(part));
                response.on('error', reject);
                response.on('end', () =>
                    resolve({
                        status: response.statusCode,
                        headers: response.headers,
                        body: Buffer.concat(parts),
                    }),
                );
            },
        );
        call.on('timeout', () => call.destroy(new Error('no answer')));
        call.on('error', reject);
        call.end(data);
    });
}

// What agentd cannot answer now is asked again.
async function call(method, path, body) {
    for (;;) {
        try {
            const answer = await request(method, path, body);
            if (answer.status !== 503) return answer;
        } catch {
            // agentd is being replaced
        }
        await sleep(200);
    }
}

// The answer's JSON. 409: we are not this agent any more, or the task is not ours.
function must({ status, body }) {
    if (status >= 400) {
        console.error(`${status === 409 ? 'fenced' : 'refused'}: ${body}`);
        process.exit(1);
    }
    return body.length > 0 ? JSON.parse(body) : undefined;
}

// What the work has come to, as the newest checkpoint that is whole has it.
async function restore(task) {
    const { status, headers, body } = await call('GET', `/v1/tasks/${task}/checkpoint`);
    if (status !== 200) return { step: 0, sum: 0, lives: [] };
    const state = JSON.parse(body);
    console.log(`resume ${task} behind step ${state.step} (checkpoint ${headers['x-holdfast-seq']})`);
    return state;
}

async function work({ id, payload }) {
    const steps = Number(payload || '5');
    must(await call('POST', `/v1/tasks/${id}/start`));
    const state = await restore(id);
    state.lives.push(HOLDFAST_INCARNATION);
    while (state.step < steps) {
        await sleep(stepSeconds * 1000);
        state.step += 1;
        state.sum += state.step;
        must(await call('PUT', `/v1/tasks/${id}/checkpoint`, Buffer.from(JSON.stringify(state))));
        must(
            await call('POST', `/v1/tasks/${id}/progress`, {
                percent: (100 * state.step) / steps,
                note: `step ${state.step}`,
            }),
        );
        console.log(`${id} step ${state.step}`);
    }
    must(await call('POST', `/v1/tasks/${id}/complete`, { result: JSON.stringify(state) }));
    console.log(`completed ${id}`);
}

process.on('SIGTERM', () => process.exit(0));
must(await call('POST', '/v1/state', { state: 'ready' }));
for (;;) {
    // The task that we were started to resume is given to us first.
    const answer = await call('POST', '/v1/tasks/claim', { wait: '30s' });
    if (answer.status === 200) await work(JSON.parse(answer.body));
    else if (answer.status !== 204) must(answer);
}
