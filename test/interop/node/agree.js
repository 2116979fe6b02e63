// grpc-js with grpc-js-xds as one of the clients that must send the same key to the same backend: as agree/main.go
// reads its orders and answers them.
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

async function run(order) {
  const client = new grpc.Client(order.target, grpc.credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 });
  const peers = [];
  let next = 0;
  const worker = async () => {
    while (next < order.calls.length) {
      const i = next++;
      peers[i] = await call(client, order.calls[i]);
    }
  };
  await Promise.all(Array.from({ length: WIDTH }, worker));
  client.close();
  return peers;
}

async function main() {
  const versions = ['@grpc/grpc-js', '@grpc/grpc-js-xds'].map((name) => require(name + '/package.json').version);
  console.log(JSON.stringify({ version: versions.join(' and xds ') }));
  for await (const line of readline.createInterface({ input: process.stdin })) {
    console.log(JSON.stringify({ peers: await run(JSON.parse(line)) }));
  }
  process.exit(0);
}

main();
