// The client side of gRPC's interop suite on grpc-js, which does not show whether an answer came compressed: the suite
// counts bytes on the wire instead. Compression of requests is a channel's, and a message may be left plain.
//
// usage: client.js --proto=DIR --list | --proto=DIR --target=ADDR --case=NAME [--ca=FILE --authority=NAME]
'use strict';
const assert = require('assert');
const fs = require('fs');
const path = require('path');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const args = Object.fromEntries(process.argv.slice(2).map((arg) => {
  const [name, ...value] = arg.replace(/^--/, '').split('=');
  return [name, value.join('=')];
}));
const options = { keepCase: true, longs: Number, enums: Number, defaults: false };
const messages = loader.loadSync(['messages.proto', 'empty.proto'].map((f) => path.join(args.proto, f)), options);

const REQUESTS = [27182, 8, 1828, 45904];
const RESPONSES = [31415, 9, 2653, 58979];
const INITIAL = 'x-grpc-test-echo-initial';
const TRAILING = 'x-grpc-test-echo-trailing-bin';
const GZIP = 2;
const NO_COMPRESS = 2; // a flag of write

function method(service, name, requestStream, responseStream, request, response) {
  return {
    path: `/grpc.testing.${service}/${name}`, requestStream, responseStream,
    requestSerialize: messages['grpc.testing.' + request].serialize,
    requestDeserialize: messages['grpc.testing.' + request].deserialize,
    responseSerialize: messages['grpc.testing.' + response].serialize,
    responseDeserialize: messages['grpc.testing.' + response].deserialize,
  };
}

const service = {
  EmptyCall: method('TestService', 'EmptyCall', false, false, 'Empty', 'Empty'),
  UnaryCall: method('TestService', 'UnaryCall', false, false, 'SimpleRequest', 'SimpleResponse'),
  StreamingInputCall: method('TestService', 'StreamingInputCall', true, false, 'StreamingInputCallRequest', 'StreamingInputCallResponse'),
  StreamingOutputCall: method('TestService', 'StreamingOutputCall', false, true, 'StreamingOutputCallRequest', 'StreamingOutputCallResponse'),
  FullDuplexCall: method('TestService', 'FullDuplexCall', true, true, 'StreamingOutputCallRequest', 'StreamingOutputCallResponse'),
  NoMethod: method('TestService', 'UnimplementedCall', false, false, 'Empty', 'Empty'),
  NoService: method('UnimplementedService', 'UnimplementedCall', false, false, 'Empty', 'Empty'),
};
const Client = grpc.makeClientConstructor(service, 'TestService');

function connect(more = {}) {
  const credentials = args.ca ? grpc.credentials.createSsl(fs.readFileSync(args.ca)) : grpc.credentials.createInsecure();
  const name = args.authority ? { 'grpc.ssl_target_name_override': args.authority, 'grpc.default_authority': args.authority } : {};
  return new Client(args.target, credentials, { ...name, ...more });
}

const soon = () => ({ deadline: Date.now() + 60000 });
const payload = (size) => ({ type: 0, body: Buffer.alloc(size) });
const size = (response) => (response.payload && response.payload.body ? response.payload.body.length : 0);
const output = (sent, wanted) => ({ response_parameters: [{ size: wanted }], payload: payload(sent) });

// Makes a unary call: the response with the metadata, or the error.
function unary(client, name, request, metadata = new grpc.Metadata()) {
  return new Promise((resolve, reject) => {
    let initial = null;
    let result = null;
    const call = client[name](request, metadata, soon(), (error, response) => {
      if (error) reject(error);
      else result = response;
    });
    call.on('metadata', (m) => { initial = m; });
    call.on('status', (status) => { if (result) resolve({ response: result, initial, trailing: status.metadata }); });
  });
}

async function fails(code, promise, text) {
  const error = await promise.then(() => { throw new Error('the RPC was OK'); }, (e) => e);
  assert.strictEqual(error.code, code, error.message);
  if (text !== undefined) assert.strictEqual(error.details, text);
}

// Everything that a stream gives: its messages, the initial metadata and the status; rejects with its error.
function all(call) {
  return new Promise((resolve, reject) => {
    const got = { responses: [], initial: null };
    call.on('metadata', (m) => { got.initial = m; });
    call.on('data', (response) => got.responses.push(response));
    call.on('error', reject);
    call.on('status', (status) => { if (status.code === grpc.status.OK) resolve({ ...got, trailing: status.metadata }); });
  });
}

async function large(client, fields = {}, metadata) {
  const got = await unary(client, 'UnaryCall', { response_size: 314159, payload: payload(271828), ...fields }, metadata);
  assert.strictEqual(size(got.response), 314159);
  return got;
}

// Sends messages, each [fields, flags], and resolves with the sum.
function input(client, requests) {
  return new Promise((resolve, reject) => {
    const call = client.StreamingInputCall(new grpc.Metadata(), soon(), (error, response) =>
      (error ? reject(error) : resolve(response.aggregated_payload_size)));
    for (const [request, flags] of requests) call.write(request, flags);
    call.end();
  });
}

const expecting = (bytes, value) => ({ payload: payload(bytes), expect_compressed: { value } });
const compressing = () => connect({ 'grpc.default_compression_algorithm': GZIP });

function checkEcho(got) {
  assert.deepStrictEqual(got.initial.get(INITIAL), ['test_initial_metadata_value']);
  assert.deepStrictEqual(got.trailing.get(TRAILING).map((b) => b.toString('hex')), ['ababab']);
}

function duplexStatus(client, status) {
  const call = client.FullDuplexCall(soon());
  call.end({ response_status: status });
  return all(call);
}

const cases = {
  async empty_unary(client) { await unary(client, 'EmptyCall', {}); },
  async large_unary(client) { await large(client); },
  async client_compressed_unary(client) {
    await fails(grpc.status.INVALID_ARGUMENT, large(client, { expect_compressed: { value: true } }));
    await large(compressing(), { expect_compressed: { value: true } });
    await large(client, { expect_compressed: { value: false } });
  },
  async server_compressed_unary(client) {
    await large(client, { response_compressed: { value: true } });
    await large(client, { response_compressed: { value: false } });
  },
  async client_streaming(client) {
    assert.strictEqual(await input(client, REQUESTS.map((n) => [{ payload: payload(n) }])), 74922);
  },
  async client_compressed_streaming(client) {
    await fails(grpc.status.INVALID_ARGUMENT, input(client, [[expecting(27182, true)]]));
    const sum = await input(compressing(), [[expecting(27182, true), 0], [expecting(45904, false), NO_COMPRESS]]);
    assert.strictEqual(sum, 73086);
  },
  async server_streaming(client) {
    const got = await all(client.StreamingOutputCall({ response_parameters: RESPONSES.map((n) => ({ size: n })) }, soon()));
    assert.deepStrictEqual(got.responses.map(size), RESPONSES);
  },
  async server_compressed_streaming(client) {
    const wishes = [{ size: 31415, compressed: { value: true } }, { size: 92653, compressed: { value: false } }];
    const got = await all(client.StreamingOutputCall({ response_parameters: wishes }, soon()));
    assert.deepStrictEqual(got.responses.map(size), [31415, 92653]);
  },
  async ping_pong(client) {
    const call = client.FullDuplexCall(soon());
    let turn = 0;
    call.on('data', (response) => {
      assert.strictEqual(size(response), RESPONSES[turn]);
      if (++turn < RESPONSES.length) call.write(output(REQUESTS[turn], RESPONSES[turn]));
      else call.end();
    });
    const end = all(call);
    call.write(output(REQUESTS[0], RESPONSES[0]));
    assert.strictEqual((await end).responses.length, RESPONSES.length);
  },
  async empty_stream(client) {
    const call = client.FullDuplexCall(soon());
    call.end();
    assert.strictEqual((await all(call)).responses.length, 0);
  },
  async custom_metadata(client) {
    const metadata = new grpc.Metadata();
    metadata.add(INITIAL, 'test_initial_metadata_value');
    metadata.add(TRAILING, Buffer.from('ababab', 'hex'));
    checkEcho(await large(client, {}, metadata));
    const call = client.FullDuplexCall(metadata, soon());
    call.end(output(271828, 314159));
    const got = await all(call);
    assert.deepStrictEqual(got.responses.map(size), [314159]);
    checkEcho(got);
  },
  async status_code_and_message(client) {
    const status = { code: grpc.status.UNKNOWN, message: 'test status message' };
    await fails(grpc.status.UNKNOWN, unary(client, 'UnaryCall', { response_status: status }), status.message);
    await fails(grpc.status.UNKNOWN, duplexStatus(client, status), status.message);
  },
  async special_status_message(client) {
    const text = '\t\ntest with whitespace\r\nand Unicode BMP \u263a and non-BMP \u{1f608}\t\n';
    await fails(grpc.status.UNKNOWN, unary(client, 'UnaryCall', { response_status: { code: grpc.status.UNKNOWN, message: text } }), text);
  },
  async unimplemented_method(client) { await fails(grpc.status.UNIMPLEMENTED, unary(client, 'NoMethod', {})); },
  async unimplemented_service(client) { await fails(grpc.status.UNIMPLEMENTED, unary(client, 'NoService', {})); },
  async cancel_after_begin(client) {
    await fails(grpc.status.CANCELLED, new Promise((resolve, reject) => {
      const call = client.StreamingInputCall(new grpc.Metadata(), soon(), (error, response) => (error ? reject(error) : resolve(response)));
      setImmediate(() => call.cancel());
    }));
  },
  async cancel_after_first_response(client) {
    const call = client.FullDuplexCall(soon());
    call.once('data', () => call.cancel());
    const end = all(call);
    call.write(output(REQUESTS[0], RESPONSES[0]));
    await fails(grpc.status.CANCELLED, end);
  },
  async timeout_on_sleeping_server(client) {
    const call = client.FullDuplexCall({ deadline: Date.now() + 1 });
    const end = all(call);
    call.write({ payload: payload(27182) });
    await fails(grpc.status.DEADLINE_EXCEEDED, end);
  },
};

if ('list' in args) {
  console.log(['version ' + require('@grpc/grpc-js/package.json').version, ...Object.keys(cases)].join('\n'));
} else {
  cases[args.case](connect()).then(() => process.exit(0), (error) => {
    console.error(error);
    process.exit(1);
  });
}
