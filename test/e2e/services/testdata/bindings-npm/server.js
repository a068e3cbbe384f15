// Reads its bindings by a library for servicebinding.io: the queue's when asked,
// the rotated one's whenever Kubernetes' link to its files changes.
const fs = require('fs');
const http = require('http');
const path = require('path');
const { getBinding } = require('kube-service-bindings');
const { getBindingData } = require('kube-service-bindings/utils');

const dir = path.join(process.env.SERVICE_BINDING_ROOT, 'rotated');
const link = path.join(dir, '..data');
const seen = { sets: 0, half: 0, last: null, looks: 0 };

// read gives a binding's entries; null when they changed while they were read.
function read() {
  try {
    const before = fs.readlinkSync(link);
    const binding = Object.fromEntries(getBindingData(dir, undefined, {}));
    return fs.readlinkSync(link) === before ? binding : null;
  } catch (e) {
    if (e.code !== 'ENOENT') throw e;
    return null;
  }
}

function look() {
  const binding = read();
  if (!binding) return setImmediate(look);
  seen.looks++;
  if (binding.user !== binding.password) seen.half++;
  if (binding.user !== seen.last) seen.sets++;
  seen.last = binding.user;
}

fs.watch(dir, (_, name) => { if (name === '..data') look(); });
look();
http.createServer((req, res) => {
  res.end(JSON.stringify(req.url === '/queue' ? getBinding('AMQP', 'rhea') : seen));
}).listen(process.env.PORT);
