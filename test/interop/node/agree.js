// grpc-js with grpc-js-xds as one of the clients that must send the same key to the same backend. Reads orders and
// writes answers as test/interop/agree/main.c does, except that it has no "service_config".
'use strict';
const readline = require('readline');
const grpc = require('@grpc/grpc-js');
require('@grpc/grpc-js-xds').register();

const WIDTH = 32;
const bytes = (buffer) => buffer;

function call(client, headers) {
  const metadata = new grpc.Metadata();
  // grpc-js fails calls while several endpoints refuse and none is connected yet (its ring_hash is that of A42): wait.
  metadata.setOptions({ waitForReady: true });
  for (const [name, value] of headers) metadata.add(name, value);
  const options = { deadline: Date.now() + 20000 };
  return new Promise((done) => {
    client.makeUnaryRequest('/torc.test.Backend/Who', bytes, bytes, Buffer.alloc(0), metadata, options, (error, answer) => {
      done(error ? `!${grpc.status[error.code]} ${error.details}` : answer.toString());
    });
  });
}

async function run(client, calls) {
  const peers = [];
  let next = 0;
  const worker = async () => {
    while (next < calls.length) {
      const i = next++;
      peers[i] = await call(client, calls[i]);
    }
  };
  await Promise.all(Array.from({ length: WIDTH }, worker));
  return peers;
}

async function main() {
  const versions = ['@grpc/grpc-js', '@grpc/grpc-js-xds'].map((name) => require(name + '/package.json').version);
  console.log(JSON.stringify({ version: versions.join(' and xds ') }));
  const options = { 'grpc.use_local_subchannel_pool': 1 };
  const cap = process.env.GRPC_RING_HASH_CAP; // a channel option here, for what others read from the environment
  if (cap) options['grpc.lb.ring_hash.ring_size_cap'] = Number(cap);
  let target = null;
  let client = null;
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const order = JSON.parse(line);
    if (order.target !== target) {
      if (client) client.close();
      target = order.target;
      client = new grpc.Client(target, grpc.credentials.createInsecure(), options);
    }
    console.log(JSON.stringify({ peers: await run(client, order.calls) }));
  }
  process.exit(0);
}

main();
