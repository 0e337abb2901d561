// json.mjs DESCRIPTORS PEER [SEED] - compares our JSON with that of @bufbuild/protobuf.
//
// For every message type, random messages go both ways. The binary form, which neither JSON
// codec has a hand in, carries them from one side to the other:
//   theirs -> binary -> our encoder -> their parser, and the same JSON tree that they write;
//   theirs -> their JSON, in all its spellings -> our decoder -> binary -> theirs.
// Then both sides judge a list of texts: they accept the same ones, and read the same values.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import {
    create, createFileRegistry, fromBinary, fromJson, ScalarType, toBinary, toJson,
} from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

const MESSAGES_PER_TYPE = 60;
const [descriptors, peer, seed = "1"] = process.argv.slice(2);
const registry = createFileRegistry(
    fromBinary(FileDescriptorSetSchema, readFileSync(descriptors)));
const types = [...registry].filter(
    (type) => type.kind === "message" && type.typeName.startsWith("holdfast."));

// mulberry32: the same messages for the same seed.
let state = Number(seed) >>> 0;
function random() {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
}
const below = (n) => Math.floor(random() * n);
const pick = (list) => list[below(list.length)];
const bits = (n) => BigInt.asUintN(n, (BigInt(below(2 ** 32)) << 32n) | BigInt(below(2 ** 32)));

const CHARACTERS = [
    "a", "Z", "0", " ", "/", '"', "\\", "\b", "\f", "\n", "\r", "\t", "\u0001", "\u001f",
    "\u007f", "\u0080", "é", "ß", "\u2028", "\u2029", "€", "\ufeff", "\uffff", "😀",
    "\u{10ffff}",
];
const randomString = () =>
    Array.from({ length: pick([0, 1, 3, 12]) }, () => pick(CHARACTERS)).join("");
const randomBytes = () => Uint8Array.from({ length: below(9) }, () => below(256));

// JSON.stringify has no -0, which the unit tests have.
function randomReal(single) {
    const view = new DataView(new ArrayBuffer(8));
    view.setBigUint64(0, bits(64));
    const value = pick([0, 1, -1.5, 0.1, 1e21, 1e-7, NaN, Infinity, -Infinity,
        below(1000) / 8, single ? view.getFloat32(0) : view.getFloat64(0)]);
    return (single ? Math.fround(value) : value) + 0;
}

function randomScalar(type) {
    switch (type) {
    case ScalarType.BOOL: return random() < 0.5;
    case ScalarType.STRING: return randomString();
    case ScalarType.BYTES: return randomBytes();
    case ScalarType.FLOAT: return randomReal(true);
    case ScalarType.DOUBLE: return randomReal(false);
    case ScalarType.INT32: case ScalarType.SINT32: case ScalarType.SFIXED32:
        return pick([0, 1, -1, 2147483647, -2147483648, below(2 ** 32) | 0]);
    case ScalarType.UINT32: case ScalarType.FIXED32:
        return pick([0, 1, 4294967295, below(2 ** 32)]);
    case ScalarType.INT64: case ScalarType.SINT64: case ScalarType.SFIXED64:
        return pick([0n, 1n, -1n, 2n ** 63n - 1n, -(2n ** 63n), BigInt.asIntN(64, bits(64))]);
    case ScalarType.UINT64: case ScalarType.FIXED64:
        return pick([0n, 1n, 2n ** 64n - 1n, bits(64)]);
    }
    throw new Error(`no scalar type ${type}`);
}

const randomEnum = (type) => (type.open && random() < 0.1 ? 99 : pick(type.values).number);

function randomTime(type, message) {
    const duration = type.typeName === "google.protobuf.Duration";
    const limit = duration ? 315576000000 : 253402300799;
    const low = duration ? -limit : -62135596800;
    const seconds = pick([0, 1, 15, low, limit, Math.floor(low + random() * (limit - low))]);
    const nanos = Math.abs(seconds) === limit && duration ? 0
        : pick([0, 0, 1, 1000, 500000000, 999999999, below(1000) * 1000000]);
    message.seconds = BigInt(seconds);
    message.nanos = duration && seconds < 0 ? 0 - nanos : nanos;
    return message;
}

function randomMessage(type, depth) {
    const message = create(type);
    if (type.typeName.startsWith("google.protobuf."))
        return randomTime(type, message);
    const r = reflect(type, message);
    for (const member of type.members) {
        const field = member.kind === "oneof" ? pick(member.fields) : member;
        if (random() < 0.25)
            continue; // stays unset
        if (field.fieldKind === "list") {
            const list = r.get(field);
            for (let i = below(4); i > 0 && depth > 0; i--)
                list.add(randomValue(field.listKind, field, depth));
        } else if (field.fieldKind === "map") {
            const map = r.get(field);
            for (let i = below(4); i > 0 && depth > 0; i--)
                map.set(randomScalar(field.mapKey), randomValue(field.mapKind, field, depth));
        } else if (field.fieldKind !== "message" || depth > 0) {
            r.set(field, randomValue(field.fieldKind, field, depth));
        }
    }
    return message;
}

function randomValue(kind, field, depth) {
    switch (kind) {
    case "enum": return randomEnum(field.enum);
    case "message": return reflect(field.message, randomMessage(field.message, depth - 1));
    }
    return randomScalar(field.scalar);
}

function ask(requests) {
    const run = spawnSync(peer, { input: requests.join("\n") + "\n", maxBuffer: 2 ** 30 });
    assert.equal(run.status, 0, `${peer}: ${run.stderr}`);
    const answers = run.stdout.toString("utf8").split("\n").slice(0, -1);
    assert.equal(answers.length, requests.length);
    return answers;
}

const hex = (type, message) => Buffer.from(toBinary(type, message)).toString("hex");
const tree = (type, message) => toJson(type, message, { registry, alwaysEmitImplicit: true });
// Through the binary form, so that a float is one.
const normal = (type, message) => tree(type, fromBinary(type, toBinary(type, message)));

function payload(answer, context) {
    assert.ok(answer.startsWith("ok "), `${answer}\n${context}`);
    return answer.slice(3);
}

function checkOurEncoder(cases) {
    const answers = ask(cases.map(
        ({ type, message }) => `encode ${type.typeName} ${hex(type, message)}`));
    cases.forEach(({ type, message }, i) => {
        const text = payload(answers[i], type.typeName);
        const ours = JSON.parse(text);
        const theirs = normal(type, fromJson(type, ours, { registry }));
        assert.deepEqual(theirs, normal(type, message), text);
        if (type.typeName.startsWith("holdfast.v1."))
            assert.deepEqual(ours, tree(type, message), text);
    });
}

// Every spelling that a writer of proto3 JSON may choose.
function theirText(type, message) {
    const options = {
        registry,
        alwaysEmitImplicit: random() < 0.5,
        useProtoFieldName: random() < 0.5,
        enumAsInteger: random() < 0.3,
    };
    const text = JSON.stringify(toJson(type, message, options), null, pick([0, 0, "\t"]));
    return text.replaceAll("\n", " "); // a request is one line
}

function checkOurDecoder(cases) {
    const texts = cases.map(({ type, message }) => theirText(type, message));
    const answers = ask(cases.map(({ type }, i) => `decode ${type.typeName} ${texts[i]}`));
    cases.forEach(({ type, message }, i) => {
        const bytes = Buffer.from(payload(answers[i], texts[i]), "hex");
        assert.deepEqual(tree(type, fromBinary(type, bytes)), normal(type, message), texts[i]);
    });
}

// Only texts on which JSON.parse has no opinion of its own (it takes the last of two members).
const TEXTS = readFileSync(new URL("json_texts.txt", import.meta.url), "utf8")
    .split("\n").filter((line) => line !== "" && !line.startsWith("#"));

function theirVerdict(type, text) {
    try {
        return normal(type, fromJson(type, JSON.parse(text), { registry }));
    } catch (error) {
        return error;
    }
}

function checkVerdicts() {
    const type = registry.getMessage("holdfast.test.Everything");
    const answers = ask(TEXTS.map((text) => `decode ${type.typeName} ${text}`));
    const disputes = TEXTS.flatMap((text, i) => {
        const theirs = theirVerdict(type, text);
        const accepted = answers[i].startsWith("ok ");
        if (theirs instanceof Error)
            return accepted ? [`they refuse ${text}: ${theirs.message}`] : [];
        if (!accepted)
            return [`they accept ${text}: ${answers[i]}`];
        const ours = tree(type, fromBinary(type, Buffer.from(answers[i].slice(3), "hex")));
        return isDeepStrictEqual(ours, theirs) ? [] : [`they read ${text} differently`];
    });
    assert.deepEqual(disputes, []);
}

const cases = types.flatMap((type) => Array.from(
    { length: MESSAGES_PER_TYPE }, () => ({ type, message: randomMessage(type, 3) })));
try {
    checkOurEncoder(cases);
    checkOurDecoder(cases);
    checkVerdicts();
} catch (error) {
    console.error(`${error.message}\n(seed ${seed})`);
    process.exit(1);
}
console.log(`${types.length} types, ${cases.length} messages each way, `
    + `${TEXTS.length} texts: all agree`);
