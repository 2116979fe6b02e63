// The server of gRPC's interop suite on grpc-js, which does not show whether a request came compressed, and compresses no
// answer.
'use strict';
const fs = require('fs');
const path = require('path');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const args = Object.fromEntries(process.argv.slice(2).map((arg) => arg.replace(/^--/, '').split('=')));
const options = { keepCase: true, longs: Number, enums: Number, defaults: true };
const messages = loader.loadSync(['messages.proto', 'empty.proto'].map((f) => path.join(args.proto, f)), options);

const INITIAL = 'x-grpc-test-echo-initial';
const TRAILING = 'x-grpc-test-echo-trailing-bin';

function echoed(call) {
  const initial = call.metadata.get(INITIAL);
  if (initial.length > 0) {
    const metadata = new grpc.Metadata();
    metadata.add(INITIAL, initial[0]);
    call.sendMetadata(metadata);
  }
  const trailers = new grpc.Metadata();
  for (const value of call.metadata.get(TRAILING)) trailers.add(TRAILING, value);
  return trailers;
}

const payload = (size) => ({ payload: { type: 0, body: Buffer.alloc(size) } });

function asked(request, trailers) {
  const status = request.response_status;
  return status ? { code: status.code, details: status.message, metadata: trailers } : null;
}

function sendAll(call, wishes, end) {
  if (wishes.length === 0) return end();
  const [wish, ...rest] = wishes;
  setTimeout(() => {
    if (call.cancelled) return;
    call.write(payload(wish.size));
    sendAll(call, rest, end);
  }, wish.interval_us / 1000);
}

const handlers = {
  EmptyCall(call, done) {
    done(null, {}, echoed(call));
  },
  UnaryCall(call, done) {
    const trailers = echoed(call);
    const status = asked(call.request, trailers);
    if (status) return done(status);
    done(null, payload(call.request.response_size), trailers);
  },
  StreamingInputCall(call, done) {
    const trailers = echoed(call);
    let size = 0;
    call.on('data', (request) => { size += request.payload.body.length; });
    call.on('end', () => done(null, { aggregated_payload_size: size }, trailers));
  },
  StreamingOutputCall(call) {
    const trailers = echoed(call);
    const status = asked(call.request, trailers);
    if (status) return call.emit('error', status);
    sendAll(call, call.request.response_parameters, () => call.end(trailers));
  },
  FullDuplexCall(call) {
    const trailers = echoed(call);
    let turn = Promise.resolve();
    call.on('data', (request) => {
      turn = turn.then(() => new Promise((next) => {
        const status = asked(request, trailers);
        if (status) return call.emit('error', status);
        sendAll(call, request.response_parameters, next);
      }));
    });
    call.on('end', () => turn.then(() => call.end(trailers)));
  },
};

const kinds = {
  EmptyCall: [false, false, 'Empty', 'Empty'],
  UnaryCall: [false, false, 'SimpleRequest', 'SimpleResponse'],
  StreamingInputCall: [true, false, 'StreamingInputCallRequest', 'StreamingInputCallResponse'],
  StreamingOutputCall: [false, true, 'StreamingOutputCallRequest', 'StreamingOutputCallResponse'],
  FullDuplexCall: [true, true, 'StreamingOutputCallRequest', 'StreamingOutputCallResponse'],
};

const service = {};
for (const [name, [requestStream, responseStream, request, response]] of Object.entries(kinds)) {
  const requestType = messages['grpc.testing.' + request];
  const responseType = messages['grpc.testing.' + response];
  service[name] = {
    path: '/grpc.testing.TestService/' + name, requestStream, responseStream,
    requestSerialize: requestType.serialize, requestDeserialize: requestType.deserialize,
    responseSerialize: responseType.serialize, responseDeserialize: responseType.deserialize,
  };
}

const server = new grpc.Server();
server.addService(service, handlers);
const credentials = args['tls-cert']
  ? grpc.ServerCredentials.createSsl(null, [{ private_key: fs.readFileSync(args['tls-key']), cert_chain: fs.readFileSync(args['tls-cert']) }])
  : grpc.ServerCredentials.createInsecure();
server.bindAsync('127.0.0.1:0', credentials, (error, port) => {
  if (error) throw error;
  console.log('version ' + require('@grpc/grpc-js/package.json').version);
  console.log('listening 127.0.0.1:' + port);
});
